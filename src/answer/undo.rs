//! Answers to the steps of an undo. The PUT of evacuate/cancel is KubeVirt's (`pkg/virt-api/rest/evacuate_cancel.go`): a
//! JSON patch that tests the mark and removes it, so a mark that is another one gives 500.

use super::raw::{is_success, one_line};
use super::{RawAnswer, UndoAnswer};

/// Classifies the answer to a step of an undo. Whatever is not known here falls into the class of its code.
pub fn classify_undo(answer: &RawAnswer) -> UndoAnswer {
    let code = answer.judged_code();
    let text = one_line(&answer.words_or_code());
    match code {
        _ if is_success(code) => UndoAnswer::Done,
        401 | 403 => UndoAnswer::Forbidden { text },
        404 if answer.names_an_object() => UndoAnswer::Gone,
        404 => UndoAnswer::Unsupported,
        409 | 500 => UndoAnswer::Doubtful { text },
        // 408: a timeout of the server or a proxy.
        408 | 429 => UndoAnswer::Unavailable { text },
        400..=499 => UndoAnswer::Refused { text },
        _ => UndoAnswer::Unavailable { text },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn recorded(text: &str) -> RawAnswer {
        let recording: Value = serde_json::from_str(text).unwrap();
        let response = &recording["response"];
        let body = &response["body"];
        let body = body.as_str().map_or_else(|| serde_json::to_vec(body).unwrap(), |text| text.as_bytes().to_vec());
        let code = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
        RawAnswer::from_parts(code, response["headers"]["Content-Type"].as_str(), None, &body)
    }

    macro_rules! recording {
        ($name:literal) => {
            recorded(include_str!(concat!("../../tests/fixtures/recordings/http/", $name, ".json")))
        };
    }

    #[test]
    fn what_virt_api_was_seen_to_answer() {
        assert_eq!(classify_undo(&recording!("evacuate-cancel-hangs")), UndoAnswer::Done);
        assert_eq!(classify_undo(&recording!("evacuate-cancel-unmarked")), UndoAnswer::Done);
        for answer in [recording!("evacuate-cancel-empty"), recording!("evacuate-cancel-wrong-node")] {
            let UndoAnswer::Doubtful { text } = classify_undo(&answer) else { panic!("{answer:?}") };
            assert!(text.contains("the server rejected our request"), "{text}");
        }
        let away = classify_undo(&recording!("restart-virt-api-down-503"));
        assert!(matches!(away, UndoAnswer::Unavailable { .. }), "{away:?}");
        assert_eq!(classify_undo(&recording!("not-found-404")), UndoAnswer::Gone);
    }

    #[test]
    fn the_code_decides_what_no_text_tells() {
        let of = |code, text: &str| classify_undo(&RawAnswer { code, text: text.to_owned(), ..RawAnswer::default() });
        assert_eq!(of(404, "404 page not found"), UndoAnswer::Unsupported, "a path that the release does not have");
        assert_eq!(of(202, ""), UndoAnswer::Done);
        assert_eq!(of(403, "no"), UndoAnswer::Forbidden { text: "no".into() });
        assert_eq!(of(401, ""), UndoAnswer::Forbidden { text: "HTTP 401".into() });
        assert_eq!(of(409, "uid"), UndoAnswer::Doubtful { text: "uid".into() });
        assert_eq!(of(400, "tainted"), UndoAnswer::Refused { text: "tainted".into() });
        for code in [0, 408, 429, 502, 503, 504] {
            assert!(matches!(of(code, "away"), UndoAnswer::Unavailable { .. }), "{code}");
        }
    }
}
