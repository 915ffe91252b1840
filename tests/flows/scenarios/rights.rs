//! Users who may not do everything.

use safe_drain_sim::{Json, PodSpec, Rule, Vm};
use serde_json::{Value, json};

use super::Stage;
use crate::harness::{Venue, secs};
use crate::rights::{NEEDED, names_the_right};

const ROLES: [&str; 3] = [
    include_str!("../../../deploy/rbac.yaml"),
    include_str!("../../../deploy/rbac-vm-restart.yaml"),
    include_str!("../../../deploy/rbac-cancel.yaml"),
];

impl Stage {
    /// A user with all rights that the shipped roles give, but for one. Another one each time.
    pub async fn user(&self, without: Option<(&str, &str, &str)>) -> String {
        let (verb, _, resource) = without.unwrap_or(("no", "", "lack"));
        let name = format!("{}-{verb}-{}", self.ns(), resource.replace('/', "-"));
        match &self.venue {
            Venue::Sim(sim) => {
                sim.mend();
                if let Some((verb, group, resource)) = without {
                    sim.deny(Rule::new(verb, group, resource));
                }
            }
            Venue::Real(real) => {
                let rules: Vec<Value> = shipped().into_iter().flat_map(|rule| cut(rule, without)).collect();
                let api = "/apis/rbac.authorization.k8s.io/v1";
                let role = json!({"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}, "rules": rules});
                let binding = json!({"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}]});
                real.send(http::Method::POST, &format!("{api}/clusterroles"), Some(&role)).await;
                real.send(http::Method::POST, &format!("{api}/clusterrolebindings"), Some(&binding)).await;
                real.until("the new role", secs(30), async || real.may(&name, "get", "pods").await).await;
            }
        }
        name
    }
}

/// The rules of the roles in `deploy/`.
fn shipped() -> Vec<Value> {
    let documents =
        ROLES.iter().flat_map(|text| serde_saphyr::from_multiple::<Value>(text).expect("the roles that are shipped"));
    documents.filter(|d| d.text("/kind") == "ClusterRole").flat_map(|d| d.list("/rules").to_vec()).collect()
}

/// The rule without that right: the resource keeps the other verbs, the other resources keep all.
fn cut(rule: Value, without: Option<(&str, &str, &str)>) -> Vec<Value> {
    let Some((verb, group, resource)) = without else { return vec![rule] };
    let has = |list: &str, word: &str| rule.list(list).iter().any(|v| v == word);
    if !(has("/apiGroups", group) && has("/resources", resource) && has("/verbs", verb)) {
        return vec![rule];
    }
    let others =
        |list: &str, word: &str| -> Vec<Value> { rule.list(list).iter().filter(|v| *v != word).cloned().collect() };
    let (mut rest, mut fewer) = (rule.clone(), rule.clone());
    rest.put("/resources", others("/resources", resource));
    fewer.put("/resources", json!([resource]));
    fewer.put("/verbs", others("/verbs", verb));
    [rest, fewer].into_iter().filter(|r| !r.list("/resources").is_empty() && !r.list("/verbs").is_empty()).collect()
}

pub async fn missing_rights(s: &Stage) {
    s.nodes(1).await;
    s.vm(Vm::new("web-1")).await;
    s.deployment("web", 1, PodSpec::new()).await;
    s.settle().await;
    s.nodes(1).await;
    // To get and list objects of the kind KubeVirt is granted to everybody by KubeVirt itself.
    for right in NEEDED.into_iter().filter(|right| *right != ("list", "kubevirt.io", "kubevirts")) {
        let user = s.user(Some(right)).await;
        let run = s.run(s.drain(0).user(&user)).await;
        println!("{right:?}");
        names_the_right(&run, right);
    }
    let user = s.user(None).await;
    s.run(s.drain(0).user(&user)).await.exits(0);
}
