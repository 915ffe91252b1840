//! Clusters and command lines by chance, small enough to be shrunk to what a mismatch is about.

use proptest::prelude::*;
use proptest::{collection, option, sample};
use safe_drain::settings::{DrainOptions, RestartStale};
use safe_drain_sim::{Json, Options, PodSpec, Profile, Sim, Vm, World};
use serde_json::json;

use crate::harness::secs;
use crate::vms::DISK;

const NS: &str = "tenant-a";
const STRATEGIES: [&str; 4] = ["None", "LiveMigrate", "LiveMigrateIfPossible", "External"];

/// Who owns a VMI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Vm(&'static str),
    ReplicaSet(usize),
    Nobody,
}

/// A VM of the cluster.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "chances, each on its own")]
pub struct Guest {
    pub owner: Owner,
    /// evictionStrategy of its template.
    pub strategy: Option<&'static str>,
    /// Why it cannot migrate.
    pub fixed: Option<&'static str>,
    /// It may run on nodes of the pool only.
    pub pool: bool,
    /// Its claim: on this node only, or anywhere.
    pub claim: Option<bool>,
    pub scratch: bool,
    pub deaf: bool,
    /// It was started before the cluster's strategy was changed.
    pub early: bool,
}

/// A workload without VMs.
#[derive(Clone, Debug)]
pub struct App {
    pub replicas: usize,
    pub budget: Option<usize>,
    pub empty_dir: bool,
}

/// A cluster.
#[derive(Clone, Debug)]
pub struct Stage {
    pub profile: Profile,
    /// The cluster's strategy when the early VMs were started, and now.
    pub before: Option<&'static str>,
    pub now: Option<&'static str>,
    /// Nodes beside node-0: whether each is of the pool, and cordoned.
    pub others: Vec<(bool, bool)>,
    pub guests: Vec<Guest>,
    pub apps: Vec<App>,
    pub seed: u64,
}

/// Flags.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    pub restart_stale: RestartStale,
    pub allow_vm_down: bool,
    pub delete_emptydir_data: bool,
    pub disable_eviction: bool,
}

fn strategy() -> impl Strategy<Value = Option<&'static str>> {
    // External for the whole cluster is rare, and then nothing else is of interest.
    option::weighted(0.8, sample::select(&STRATEGIES[..3]))
}

fn guest() -> impl Strategy<Value = Guest> {
    let owner = prop_oneof![
        6 => sample::select(vec!["Always", "RerunOnFailure", "Manual", "Once"]).prop_map(Owner::Vm),
        1 => (1usize..3).prop_map(Owner::ReplicaSet),
        1 => Just(Owner::Nobody),
    ];
    let rarely = || prop::bool::weighted(0.2);
    (
        owner,
        option::weighted(0.3, sample::select(&STRATEGIES[..])),
        option::weighted(0.5, sample::select(vec![DISK, "HostDeviceNotLiveMigratable"])),
        rarely(),
        option::weighted(0.3, any::<bool>()),
        rarely(),
        rarely(),
        any::<bool>(),
    )
        .prop_map(|(owner, strategy, fixed, pool, claim, scratch, deaf, early)| Guest {
            owner,
            strategy,
            fixed,
            pool,
            claim,
            scratch,
            deaf,
            early,
        })
}

fn app() -> impl Strategy<Value = App> {
    (1usize..4, option::of(0usize..2), prop::bool::weighted(0.2)).prop_map(|(replicas, budget, empty_dir)| App {
        replicas,
        budget,
        empty_dir,
    })
}

/// Any cluster.
pub fn stage() -> impl Strategy<Value = Stage> {
    let profiles = vec![
        Profile::V1_7,
        Profile::V1_9,
        Profile::V1_8,
        Profile::V1_6,
        Profile::V1_6_0,
        Profile::V1_5,
        Profile::V1_4,
        Profile::V1_2,
    ];
    (
        sample::select(profiles),
        strategy(),
        strategy(),
        collection::vec((any::<bool>(), prop::bool::weighted(0.15)), 1..4),
        collection::vec(guest(), 0..6),
        collection::vec(app(), 0..3),
        any::<u64>(),
    )
        .prop_map(|(profile, before, now, others, guests, apps, seed)| Stage {
            profile,
            before,
            now,
            others,
            guests,
            apps,
            seed,
        })
}

/// Any flags that matter to VMs.
pub fn flags() -> impl Strategy<Value = Flags> {
    let restart_stale = sample::select(vec![RestartStale::Always, RestartStale::Unset, RestartStale::Never]);
    (restart_stale, prop::bool::weighted(0.8), prop::bool::weighted(0.8), prop::bool::weighted(0.2)).prop_map(
        |(restart_stale, allow_vm_down, delete_emptydir_data, disable_eviction)| Flags {
            restart_stale,
            allow_vm_down,
            delete_emptydir_data,
            disable_eviction,
        },
    )
}

impl Flags {
    /// The drain of node-0 with them.
    pub fn options(self) -> DrainOptions {
        DrainOptions {
            restart_stale: self.restart_stale,
            allow_vm_down: self.allow_vm_down,
            delete_emptydir_data: self.delete_emptydir_data,
            disable_eviction: self.disable_eviction,
            timeout: secs(1200),
            ..DrainOptions::for_nodes(["node-0"])
        }
    }
}

impl Stage {
    /// The cluster; each call gives the same one.
    pub fn build(&self) -> Sim {
        let options = Options {
            kubevirt: Some(self.profile),
            eviction_strategy: self.before.map(str::to_owned),
            seed: self.seed,
            ..Options::default()
        };
        let mut world = Sim::new(options).world().node_with("node-0", |n| n.set_label("pool", "fast"));
        for (number, (pool, cordoned)) in self.others.iter().enumerate() {
            world = world.node_with(&format!("node-{}", number + 1), |n| {
                if *pool {
                    n.set_label("pool", "fast");
                }
                if *cordoned {
                    n.put("/spec/unschedulable", json!(true));
                }
            });
        }
        world = self.guests(world.on("node-0"), true);
        world = match self.now {
            Some(now) => world.eviction_strategy(now),
            None => world.change("KubeVirt", "kubevirt", "kubevirt", |k| k.cut("/spec/configuration/evictionStrategy")),
        };
        world = self.guests(world, false);
        // Where no node is open a budget never recovers, which nobody can see before.
        let open = self.others.iter().any(|(_, cordoned)| !cordoned);
        for (number, app) in self.apps.iter().enumerate().filter(|_| open) {
            let name = format!("app-{number}");
            let pod = if app.empty_dir { PodSpec::new().empty_dir() } else { PodSpec::new() };
            world = world.deployment_with("shop", &name, app.replicas, pod);
            if let Some(budget) = app.budget {
                world = world.pdb("shop", &name, &name, json!({"maxUnavailable": budget}));
            }
        }
        world.done()
    }

    fn guests(&self, mut world: World, early: bool) -> World {
        for (number, guest) in self.guests.iter().enumerate().filter(|(_, g)| g.early == early) {
            let name = format!("vm-{number}");
            let mut vm = Vm::new(&name);
            if let Some(strategy) = guest.strategy {
                vm = vm.eviction_strategy(strategy);
            }
            if let Some(reason) = guest.fixed {
                vm = vm.non_migratable(reason);
            }
            if guest.pool {
                vm = vm.node_selector("pool", "fast");
            }
            if let Some(here) = guest.claim {
                let claim = format!("data-{number}");
                let (mode, node) = if here { ("ReadWriteOnce", Some("node-0")) } else { ("ReadWriteMany", None) };
                world = world.volume(NS, &claim, mode, node);
                vm = vm.claim(&claim);
                // As virt-handler says of a disk that is not shared.
                if here && guest.fixed.is_none() {
                    vm = vm.non_migratable(DISK);
                }
            }
            if guest.scratch {
                vm = vm.empty_disk("scratch");
            }
            if guest.deaf {
                vm = vm.ignores_shutdown();
            }
            world = match guest.owner {
                Owner::Vm(run_strategy) => world.vm(NS, vm.run_strategy(run_strategy)),
                Owner::ReplicaSet(replicas) => world.vmi_replica_set(NS, &name, replicas, vm),
                Owner::Nobody => world.vmi(NS, vm),
            };
        }
        world
    }
}
