//! Takes from the process what a daemon never needs, so that a fault in it is worth less to an attacker.
//!
//! It can gain no privileges any more (`no_new_privs`) and run no program, and system calls about other processes, kernel modules, mounts,
//! namespaces, clocks and keys fail with EPERM. Not where it must run programs: those that files of MRTG name may become another user (`ping`, `sudo`).

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter_all_threads};

/// What no part of the daemon asks of the kernel.
const NEVER: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];
/// Confines this process.
///
/// # Errors
/// A text for the log, when the kernel does not offer it.
pub fn confine() -> Result<(), String> {
    rustix::thread::set_no_new_privs(true).map_err(|error| format!("no_new_privs: {error}"))?;
    let rules: BTreeMap<i64, _> = NEVER.iter().map(|&call| (call, Vec::new())).collect();
    let architecture = std::env::consts::ARCH.try_into();
    let architecture =
        architecture.map_err(|_| "system calls are not filtered on this architecture".to_string())?;
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture);
    let program: Result<BpfProgram, _> = filter.and_then(TryInto::try_into);
    let program = program.map_err(|error| format!("the filter of system calls: {error}"))?;
    apply_filter_all_threads(&program).map_err(|error| format!("the filter of system calls: {error}"))
}
