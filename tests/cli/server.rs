//! Servers that are broken on purpose: each takes connections on a port of its own and answers every request alike.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What a server does with a request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Sends this, then closes the connection.
    Bytes(String),
    /// Nothing, ever.
    Silence,
}

impl Answer {
    /// An HTTP answer.
    pub(crate) fn http(status: &str, content_type: &str, body: &str) -> Self {
        let length = body.len();
        Self::Bytes(format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    }
}

/// A server that runs until its test ends.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Plain HTTP.
    pub(crate) fn http(answer: Answer) -> Self {
        Self::accept(move |stream, heads| serve(stream, heads, &answer))
    }

    /// The same behind TLS.
    pub(crate) fn tls(config: ServerConfig, answer: Answer) -> Self {
        let config = Arc::new(config);
        Self::accept(move |stream, heads| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            serve(StreamOwned::new(connection, stream), heads, &answer);
        })
    }

    fn accept(serve: impl Fn(TcpStream, &Mutex<Vec<String>>) + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        // Threads end with the process of the tests; a connection that hangs is part of some.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (serve, seen) = (serve.clone(), Arc::clone(&seen));
                thread::spawn(move || serve(stream, &seen));
            }
        });
        Self { address, heads }
    }

    /// The first lines of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.heads().iter().map(|head| head.lines().next().unwrap_or_default().to_owned()).collect()
    }

    /// All requests so far, with their headers.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn serve(stream: impl Read + Write, heads: &Mutex<Vec<String>>, answer: &Answer) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    // An error here is a client that gave up, as it should.
    while stream.read_line(&mut head).unwrap_or(0) > 0 && !head.ends_with("\r\n\r\n") {}
    if head.is_empty() {
        return;
    }
    heads.lock().unwrap().push(head);
    match answer {
        Answer::Bytes(bytes) => {
            let stream = stream.get_mut();
            let _ = stream.write_all(bytes.as_bytes()).and_then(|()| stream.flush());
        }
        Answer::Silence => {
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
}

/// A port on which nobody listens.
pub(crate) fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // A connection that was made once keeps the port from being given to another test for a while.
    let stream = TcpStream::connect(address).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let _ = accepted.shutdown(Shutdown::Both);
    drop((accepted, listener));
    drop(stream);
    address
}
