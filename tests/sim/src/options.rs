//! The knobs of a simulated cluster, as plain fields: make one with `Options::default()` and change what the test is about.

use std::time::Duration;

/// Which KubeVirt release is played: what its webhook answers, whether it keeps budgets, which subresources it has.
///
/// A minor release stands for all of its patches, but for two whose first patch behaves otherwise: `V1_3_0` (evictions of
/// completed launchers are not passed on) and `V1_6_0` (hot-plug pods are not guarded).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "the names are releases")]
pub enum Profile {
    V1_0,
    V1_1,
    V1_2,
    V1_3_0,
    V1_3,
    V1_4,
    V1_5,
    V1_6_0,
    V1_6,
    V1_7,
    V1_8,
    V1_9,
}

impl Profile {
    /// All of them, oldest first.
    pub const ALL: [Self; 12] = [
        Self::V1_0,
        Self::V1_1,
        Self::V1_2,
        Self::V1_3_0,
        Self::V1_3,
        Self::V1_4,
        Self::V1_5,
        Self::V1_6_0,
        Self::V1_6,
        Self::V1_7,
        Self::V1_8,
        Self::V1_9,
    ];

    /// The version that the KubeVirt object reports.
    pub fn version(self) -> &'static str {
        match self {
            Self::V1_0 => "v1.0.0",
            Self::V1_1 => "v1.1.1",
            Self::V1_2 => "v1.2.2",
            Self::V1_3_0 => "v1.3.0",
            Self::V1_3 => "v1.3.1",
            Self::V1_4 => "v1.4.1",
            Self::V1_5 => "v1.5.3",
            Self::V1_6_0 => "v1.6.0",
            Self::V1_6 => "v1.6.3",
            Self::V1_7 => "v1.7.0",
            Self::V1_8 => "v1.8.1",
            Self::V1_9 => "v1.9.0",
        }
    }

    /// Reads `1.7`, `v1.6.0` and the like.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_start_matches('v');
        let minor = |p: &Self| p.version().rsplit_once('.').is_some_and(|(minor, _)| minor == format!("v{text}"));
        let exact = Self::ALL.into_iter().find(|p| p.version().trim_start_matches('v') == text);
        exact.or_else(|| Self::ALL.into_iter().rfind(minor))
    }

    /// Whether new VMIs are given the cluster's evictionStrategy for good; else they follow the cluster's as it is.
    pub fn stamps_strategy(self) -> bool {
        self > Self::V1_0
    }

    /// Whether the webhook itself refuses the eviction that makes it mark a VMI; else only the VMI's budget does.
    pub fn refuses_when_it_marks(self) -> bool {
        self >= Self::V1_3_0
    }

    /// Whether it refuses further evictions of a marked VMI's launchers; else they are left to the VMI's budget.
    pub fn refuses_marked(self) -> bool {
        self >= Self::V1_5
    }

    /// Whether evictions of completed launchers are passed on.
    pub fn passes_completed(self) -> bool {
        self >= Self::V1_3
    }

    /// Whether a dry run is known by the eviction's body; else by the query only.
    pub fn reads_dry_run_of_body(self) -> bool {
        self >= Self::V1_4
    }

    /// Whether each eviction of the cluster is reviewed, and passes where virt-api does not answer.
    pub fn fails_open(self) -> bool {
        self <= Self::V1_4
    }

    /// Whether it keeps a budget for each VMI that is to migrate.
    pub fn keeps_budgets(self) -> bool {
        self <= Self::V1_5
    }

    /// Whether evictions of hot-plug pods are refused.
    pub fn guards_hotplug(self) -> bool {
        self >= Self::V1_6
    }
}

/// How virt-api is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VirtApi {
    /// It answers.
    Up,
    /// The service has no ready endpoint: refused at once.
    NoEndpoints,
    /// The endpoint refuses connections.
    Refused,
    /// It accepts and never answers: the webhook call times out after 10 s.
    Hang,
}

/// All knobs. Delays are those of the real test bed unless said otherwise; `speed` divides them all.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "knobs, each on its own")]
pub struct Options {
    /// Whether KubeVirt is installed, and which release.
    pub kubevirt: Option<Profile>,
    /// Whether the CDI API is there too.
    pub cdi: bool,
    /// evictionStrategy of the KubeVirt object at the start; `None` leaves the field out.
    pub eviction_strategy: Option<String>,
    /// virt-api's state.
    pub virt_api: VirtApi,
    /// virt-api has no endpoints while none of its pods is ready (see `World::kubevirt_pods`).
    pub virt_api_from_pods: bool,
    /// How webhook errors name virt-api.
    pub virt_api_url: String,
    /// The address that dial errors name.
    pub virt_api_dial: String,
    /// Whether virt-controller runs (evacuations, migrations, VM and VMI controllers).
    pub virt_controller: bool,
    /// A pod from bound to Running, and a guest from Scheduled to Running.
    pub start: Duration,
    /// A pod from deleted to gone (annotation `lab/stop` on a pod overrides it; never more than its grace).
    pub stop: Duration,
    /// The copy phase of a live migration.
    pub migrate: Duration,
    /// Hand-over of a migration to the nodes.
    pub handover: Duration,
    /// From a pod's creation to its binding.
    pub schedule: Duration,
    /// From a pod's change to the new status of its budgets.
    pub disruption: Duration,
    /// Whether the disruption controller runs.
    pub disruption_controller: bool,
    /// An unschedulable migration target fails the migration after this time.
    pub unschedulable_target: Duration,
    /// First wait after a failed evacuation migration; doubles with each further failure.
    pub migration_backoff: Duration,
    /// parallelMigrationsPerCluster
    pub migrations_per_cluster: usize,
    /// parallelOutboundMigrationsPerNode
    pub migrations_per_node: usize,
    /// How long the API takes for each answer.
    pub latency: Duration,
    /// Between two writes of a node's KubeVirt heartbeat. Not divided by `speed`.
    pub heartbeat: Duration,
    /// How many changes a watch can go back before it gets 410.
    pub watch_history: usize,
    /// Between two bookmarks.
    pub bookmark: Duration,
    /// Whether `sendInitialEvents` is supported; refused with 422 otherwise.
    pub streaming_lists: bool,
    /// The user that requests come from, as refusals name it.
    pub user: String,
    /// Divides all of the cluster's own delays.
    pub speed: f64,
    /// Seed of uids and name suffixes.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kubevirt: Some(Profile::V1_7),
            cdi: false,
            eviction_strategy: Some("LiveMigrateIfPossible".to_owned()),
            virt_api: VirtApi::Up,
            virt_api_from_pods: false,
            virt_api_url: "https://virt-api.kubevirt.svc:443".to_owned(),
            virt_api_dial: "10.96.0.77:443".to_owned(),
            virt_controller: true,
            start: Duration::from_millis(300),
            stop: Duration::from_secs(1),
            migrate: Duration::from_secs(5),
            handover: Duration::from_millis(300),
            schedule: Duration::from_millis(20),
            disruption: Duration::from_millis(10),
            disruption_controller: true,
            unschedulable_target: Duration::from_secs(300),
            migration_backoff: Duration::from_secs(20),
            migrations_per_cluster: 5,
            migrations_per_node: 2,
            latency: Duration::ZERO,
            heartbeat: Duration::from_secs(60),
            watch_history: 20_000,
            bookmark: Duration::from_secs(60),
            streaming_lists: true,
            user: "admin".to_owned(),
            speed: 1.0,
            seed: 1,
        }
    }
}

impl Options {
    /// A cluster without KubeVirt.
    pub fn plain() -> Self {
        Self { kubevirt: None, ..Self::default() }
    }

    /// The release played, or the default one where a caller only has to pick a dialect.
    pub fn profile(&self) -> Profile {
        self.kubevirt.unwrap_or(Profile::V1_7)
    }
}
