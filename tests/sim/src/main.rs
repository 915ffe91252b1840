//! `safe-drain-sim`: a simulated cluster on loopback, around a command or until Ctrl-C.

use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use safe_drain_sim::{Loopback, Options, Profile, Sim, play, scenario};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
#[command(about = "A simulated Kubernetes API server with KubeVirt")]
struct Cli {
    #[command(subcommand)]
    command: Cmd,
}

#[derive(Subcommand)]
enum Cmd {
    /// Runs a command with KUBECONFIG set, and ends as it ends
    Run {
        #[command(flatten)]
        cluster: Cluster,
        /// The command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Serves until Ctrl-C
    Serve {
        #[command(flatten)]
        cluster: Cluster,
        /// Also writes the kubeconfig there
        #[arg(long)]
        kubeconfig: Option<PathBuf>,
    },
    /// Prints a node to create, for `play`
    Node {
        /// Its name
        name: String,
        /// Without a virt-handler
        #[arg(long)]
        plain: bool,
    },
    /// Plays kubelets and virt-handlers of a real cluster, until it is ended
    Play {
        /// The account of virt-controller there
        #[arg(long)]
        kubeconfig: PathBuf,
    },
}

#[derive(Args)]
struct Cluster {
    /// Which cluster
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(scenario::NAMES))]
    scenario: String,
    /// Divides all delays of the cluster
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// KubeVirt release: 1.0 to 1.9, 1.3.0 or 1.6.0
    #[arg(long, default_value = "1.7")]
    kubevirt: String,
    /// Number of pods, where the scenario has one
    #[arg(long)]
    pods: Option<usize>,
    /// maxUnavailable of a budget over them
    #[arg(long)]
    budget: Option<usize>,
}

impl Cluster {
    async fn start(&self) -> io::Result<(Sim, Loopback)> {
        let wrong = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        let profile = Profile::parse(&self.kubevirt)
            .ok_or_else(|| wrong(format!("unknown KubeVirt release {}", self.kubevirt)))?;
        if !(self.speed > 0.0 && self.speed.is_finite()) {
            return Err(wrong("--speed must be positive".to_owned()));
        }
        let options = Options { kubevirt: Some(profile), speed: self.speed, ..Options::default() };
        let settings = scenario::Settings { options, pods: self.pods, budget: self.budget };
        let sim = scenario::start(&self.scenario, settings)
            .ok_or_else(|| wrong(format!("unknown scenario {}", self.scenario)))?;
        let loopback = sim.listen().await?;
        Ok((sim, loopback))
    }
}

/// How it ends.
enum End {
    Code(u8),
    Signal(i32),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let end = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|rt| rt.block_on(work(cli)));
    match end {
        Ok(End::Code(code)) => ExitCode::from(code),
        Ok(End::Signal(number)) => {
            // Dies by the same signal: a fresh shell has the default handlers.
            let error = std::process::Command::new("sh").args(["-c", &format!("kill -{number} $$")]).exec();
            let _ = writeln!(io::stderr(), "safe-drain-sim: {error}");
            ExitCode::from(u8::try_from(128 + number).unwrap_or(255))
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "safe-drain-sim: {error}");
            ExitCode::from(2)
        }
    }
}

async fn work(cli: Cli) -> io::Result<End> {
    match cli.command {
        Cmd::Run { cluster, command } => {
            let (sim, loopback) = cluster.start().await?;
            let end = run(&loopback, &command).await;
            sim.shutdown();
            end
        }
        Cmd::Serve { cluster, kubeconfig } => {
            let (sim, loopback) = cluster.start().await?;
            let path = match &kubeconfig {
                Some(path) => {
                    loopback.write_kubeconfig(path)?;
                    path
                }
                None => &loopback.kubeconfig,
            };
            writeln!(io::stdout(), "export KUBECONFIG={}", path.display())?;
            io::stdout().flush()?;
            let number = ended().await?;
            sim.shutdown();
            Ok(if number == 2 { End::Code(0) } else { End::Signal(number) })
        }
        Cmd::Node { name, plain } => {
            writeln!(io::stdout(), "{}", play::node(&name, !plain, play::now()))?;
            Ok(End::Code(0))
        }
        Cmd::Play { kubeconfig } => {
            let options = Options::default();
            tokio::select! {
                end = play::play(&kubeconfig, &options) => end.map(|()| End::Code(0)),
                number = ended() => Ok(End::Signal(number?)),
            }
        }
    }
}

/// Waits for the signal that ends it.
async fn ended() -> io::Result<i32> {
    let mut term = signal(SignalKind::terminate())?;
    Ok(tokio::select! {
        _ = tokio::signal::ctrl_c() => 2,
        _ = term.recv() => 15,
    })
}

async fn run(loopback: &Loopback, command: &[String]) -> io::Result<End> {
    let (program, args) = command.split_first().ok_or_else(|| io::Error::other("no command"))?;
    // A Ctrl-C reaches the command through the terminal; this process waits for how it takes it.
    let (mut int, mut term) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut child = tokio::process::Command::new(program)
        .args(args)
        .env("KUBECONFIG", &loopback.kubeconfig)
        .kill_on_drop(true)
        .spawn()?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            _ = int.recv() => {}
            _ = term.recv() => {
                if let Some(id) = child.id() {
                    let _ = tokio::process::Command::new("kill").arg(id.to_string()).status().await;
                }
            }
        }
    };
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(u8::try_from(code).unwrap_or(255)),
        (None, Some(number)) => End::Signal(number),
        (None, None) => End::Code(255),
    })
}
