//! Values on their way, in steps of five milliseconds: a leader takes them, the log takes its messages, a replica applies them.
//!
//! What each costs is what was measured with real nodes and brokers (`docs/cluster.md`). A partition has one message on its way at a time, as the leader's sender
//! has; what came meanwhile goes with the next. All that share a machine get parts of its cores, and nothing takes more than one core for itself.

use pagecache::cluster::{
    APPEND_LATENCY_SECONDS as APPEND_LATENCY, APPEND_SECONDS as APPEND_CPU, BYTE_SECONDS as BYTE_CPU,
    COST_OF_ONE_SOURCE,
};

/// Seconds of a step.
const STEP: f64 = 0.005;
/// Steps between two polls: ten seconds.
pub const STEPS_PER_POLL: usize = 2000;
/// Polls that are simulated; the first one only fills the queues.
const POLLS: usize = 4;
/// The step in which a node is lost: in the middle of the third round of polls, before most of its values if those come early.
const LOSS: usize = 2 * STEPS_PER_POLL;
/// From the loss of a node until another one leads: three seconds of silence, and a claim.
const SILENCE: usize = 700;

/// CPU of a leader and of a replica for a value, with brokers, W1: seconds.
const LEAD_CPU: f64 = COST_OF_ONE_SOURCE.leader_seconds;
const APPLY_CPU: f64 = COST_OF_ONE_SOURCE.replica_seconds;
/// Bytes of a value in the log.
const VALUE_BYTES: f64 = COST_OF_ONE_SOURCE.log_bytes.0;
/// The envelope of a message and its records.
const MESSAGE_BYTES: f64 = 112.0;
/// What a leader reads of its store's log at once.
const PIECE_BYTES: f64 = 1_048_576.0;

/// How large the machines are.
#[derive(Clone, Copy)]
pub struct Machines {
    /// Cores of a node.
    pub node_cores: f64,
    /// Cores of all brokers together.
    pub broker_cores: f64,
}

/// Values by partition and step of a round of polls.
pub struct Arrivals(Vec<Vec<f32>>);

impl Arrivals {
    pub fn new(partitions: usize) -> Arrivals {
        Arrivals(vec![vec![0.0; STEPS_PER_POLL]; partitions])
    }

    pub fn add(&mut self, partition: usize, step: usize, values: f32) {
        self.0[partition][step] += values;
    }
}

/// A message on its way.
struct Message {
    values: f64,
    /// CPU that the brokers have to spend yet, and seconds that it takes besides.
    work: f64,
    latency: f64,
}

/// A partition: values so far that came, that the leader took, that were answered, and that the replica applied.
#[derive(Default)]
struct Lane {
    arrived: f64,
    taken: f64,
    answered: f64,
    applied: f64,
    /// Of each step, `arrived`, and the oldest steps of which something is not answered, or not applied.
    history: Vec<f64>,
    unanswered: usize,
    unapplied: usize,
    message: Option<Message>,
    leader: usize,
    replica: Option<usize>,
    /// The step from which on it has a leader.
    led_from: usize,
}

/// What was seen after the first polls. Times are seconds.
#[derive(Default)]
pub struct Seen {
    /// From the arrival of a value until it is answered, and until a replica has applied it: the longest.
    pub answer: f64,
    pub lag: f64,
    /// The same of partitions that the lost node led, until when it was long, and of no others.
    pub lag_of_lost: f64,
    pub recovered: f64,
    /// What was used of the cores.
    pub node_share: f64,
    pub broker_share: f64,
    /// Appends a second.
    pub appends: f64,
}

/// The simulation.
pub struct Flow {
    lanes: Vec<Lane>,
    arrivals: Arrivals,
    nodes: usize,
    machines: Machines,
    node_cpu: f64,
    broker_cpu: f64,
    appends: u64,
}

impl Lane {
    /// The age of the oldest value that is not done, by how many are.
    fn age(history: &[f64], oldest: &mut usize, done: f64) -> f64 {
        // Sums of many parts are not exact.
        while *oldest < history.len() && history[*oldest] <= done + 0.5 {
            *oldest += 1;
        }
        (history.len() - *oldest) as f64 * STEP
    }
}

impl Flow {
    /// `places` are the leader and the replica of each partition.
    pub fn new(places: Vec<[usize; 2]>, nodes: usize, arrivals: Arrivals, machines: Machines) -> Flow {
        let lane = |[leader, replica]: [usize; 2]| Lane { leader, replica: Some(replica), ..Lane::default() };
        let lanes = places.into_iter().map(lane).collect();
        Flow { lanes, arrivals, nodes, machines, node_cpu: 0.0, broker_cpu: 0.0, appends: 0 }
    }

    /// Runs all polls; `lost` is a node that is lost in the third.
    pub fn run(mut self, lost: Option<usize>) -> Seen {
        let mut seen = Seen::default();
        let was_led: Vec<bool> = self.lanes.iter().map(|lane| Some(lane.leader) == lost).collect();
        for step in 0..POLLS * STEPS_PER_POLL {
            if let Some(node) = lost.filter(|_| step == LOSS) {
                self.lose(node, step);
            }
            self.arrive(step);
            self.work(step);
            self.append();
            let is_counted = step >= STEPS_PER_POLL;
            for (lane, was_led) in self.lanes.iter_mut().zip(&was_led).filter(|_| is_counted) {
                let answer = Lane::age(&lane.history, &mut lane.unanswered, lane.answered);
                let applied = if lane.replica.is_some() { lane.applied } else { lane.answered };
                let lag = Lane::age(&lane.history, &mut lane.unapplied, applied);
                if *was_led {
                    seen.lag_of_lost = seen.lag_of_lost.max(lag);
                    if lag > 2.0 {
                        seen.recovered = (step - LOSS.min(step)) as f64 * STEP;
                    }
                } else {
                    (seen.answer, seen.lag) = (seen.answer.max(answer), seen.lag.max(lag));
                }
            }
        }
        let seconds = (POLLS * STEPS_PER_POLL) as f64 * STEP;
        seen.node_share = self.node_cpu / (seconds * self.machines.node_cores * self.nodes as f64);
        seen.broker_share = self.broker_cpu / (seconds * self.machines.broker_cores);
        seen.appends = self.appends as f64 / seconds;
        seen
    }

    /// What a node led, the other replica leads after a while; what was on its way to the log is sent again.
    fn lose(&mut self, node: usize, step: usize) {
        for lane in &mut self.lanes {
            if lane.leader == node {
                lane.leader = lane.replica.take().expect("it has one");
                lane.led_from = step + SILENCE;
                lane.message = None;
                lane.taken = lane.answered;
            } else if lane.replica == Some(node) {
                lane.replica = None;
            }
        }
    }

    fn arrive(&mut self, step: usize) {
        for (lane, arrivals) in self.lanes.iter_mut().zip(&self.arrivals.0) {
            lane.arrived += f64::from(arrivals[step % STEPS_PER_POLL]);
            lane.history.push(lane.arrived);
        }
    }

    /// The nodes' part of a step: leaders take values, replicas apply what was answered.
    fn work(&mut self, step: usize) {
        let mut wanted = vec![0.0; self.nodes];
        let demand = |lane: &Lane| {
            let leads = if step >= lane.led_from { (lane.arrived - lane.taken) * LEAD_CPU } else { 0.0 };
            let applies = lane.replica.map_or(0.0, |_| (lane.answered - lane.applied) * APPLY_CPU);
            (leads.min(STEP), applies.min(STEP))
        };
        for lane in &self.lanes {
            let (leads, applies) = demand(lane);
            wanted[lane.leader] += leads;
            lane.replica.into_iter().for_each(|node| wanted[node] += applies);
        }
        let cores = self.machines.node_cores * STEP;
        let share: Vec<f64> = wanted.iter().map(|wanted| (cores / wanted.max(cores)).min(1.0)).collect();
        for lane in &mut self.lanes {
            let (leads, applies) = demand(lane);
            let given = leads * share[lane.leader];
            lane.taken += given / LEAD_CPU;
            self.node_cpu += given;
            if let Some(node) = lane.replica {
                let given = applies * share[node];
                lane.applied += given / APPLY_CPU;
                self.node_cpu += given;
            }
        }
    }

    /// The brokers' part of a step.
    fn append(&mut self) {
        for lane in &mut self.lanes {
            let waiting = lane.taken - lane.answered;
            if lane.message.is_none() && waiting > 0.25 {
                let values = waiting.min((PIECE_BYTES - MESSAGE_BYTES) / VALUE_BYTES);
                let work = APPEND_CPU + (values * VALUE_BYTES + MESSAGE_BYTES) * BYTE_CPU;
                lane.message = Some(Message { values, work, latency: APPEND_LATENCY });
                self.appends += 1;
            }
        }
        let active = self.lanes.iter().filter_map(|lane| lane.message.as_ref());
        let wanted: f64 = active.map(|message| message.work.min(STEP)).sum();
        let cores = self.machines.broker_cores * STEP;
        let share = (cores / wanted.max(cores)).min(1.0);
        for lane in &mut self.lanes {
            let Some(message) = &mut lane.message else { continue };
            let given = message.work.min(STEP) * share;
            message.work -= given;
            message.latency -= STEP;
            self.broker_cpu += given;
            if message.work < 1e-9 && message.latency <= 0.0 {
                lane.answered += message.values;
                lane.message = None;
            }
        }
    }
}
