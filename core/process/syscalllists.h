// SPDX-License-Identifier: GPL-3.0-or-later
//
// System calls by what they are good for. Names that an architecture does not have are left out of its lists.
#pragma once

#include "core/process/syscallnumbers.h"

namespace klineage::process {

/// Of a program that loads libraries, compiles, and computes in threads: what PoCL, NVRTC, OpenBLAS and oneDNN were seen to use, and what
/// the C library uses in place of it on other systems. Which files, processes and limits it means is for Landlock and for the rules
/// about arguments.
inline constexpr long computingCalls[] = {
    // files
    SYS_read,
    SYS_pread64,
    SYS_readv,
    SYS_preadv,
    SYS_write,
    SYS_pwrite64,
    SYS_writev,
    SYS_openat,
    SYS_close,
    SYS_close_range,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_lseek,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_dup,
    SYS_dup3,
    SYS_pipe2,
    SYS_mkdirat,
    SYS_unlinkat,
    SYS_renameat2,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_flock,
    SYS_umask,
    SYS_statfs,
    SYS_fstatfs,
    SYS_fadvise64,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_open // x86-64 has a second, older set
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_getdents,
    SYS_dup2,
    SYS_pipe,
    SYS_mkdir,
    SYS_rmdir,
    SYS_unlink,
    SYS_rename,
    SYS_creat,
#endif
    // memory
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_msync,
    SYS_mincore,
    SYS_membarrier,
    SYS_get_mempolicy,
    // threads and itself
    SYS_clone,
    SYS_exit,
    SYS_exit_group,
    SYS_futex,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_sched_get_priority_max,
    SYS_sched_get_priority_min,
    SYS_getcpu,
    SYS_gettid,
    SYS_getpid,
    SYS_getppid,
    SYS_getpgid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getgroups,
    SYS_getresuid,
    SYS_getresgid,
    SYS_capget,
    SYS_prctl,
    SYS_seccomp,
    SYS_getpriority,
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
#ifdef SYS_getpgrp
    SYS_getpgrp,
#endif
    // signals
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigpending,
    SYS_rt_sigtimedwait,
    SYS_rt_sigsuspend,
    SYS_sigaltstack,
    SYS_restart_syscall,
    // time and the machine
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getrusage,
    SYS_times,
    SYS_sysinfo,
    SYS_uname,
    SYS_getrandom,
#ifdef SYS_time
    SYS_time,
#endif
#ifdef SYS_getrlimit
    SYS_getrlimit,
#endif
    // pipes and sockets that it has
    SYS_sendto,
    SYS_sendmsg,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_shutdown,
    SYS_getsockopt,
    SYS_getsockname,
    SYS_ppoll,
    SYS_pselect6,
    SYS_eventfd2,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
#ifdef SYS_poll
    SYS_poll,
    SYS_select,
    SYS_epoll_wait,
#endif
};

/// To start processes and wait for them.
inline constexpr long startingCalls[] = {
    SYS_wait4,
    SYS_waitid,
#ifdef SYS_fork
    SYS_vfork,
    SYS_fork,
#endif
};

/// Of a process that has all that it needs: memory without a right to execute, descriptors that are open, waiting, and the clock.
inline constexpr long sealedCalls[] = {
    SYS_read,
    SYS_readv,
    SYS_write,
    SYS_writev,
    SYS_lseek,
    SYS_close,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_exit,
    SYS_exit_group,
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getcpu,
    SYS_gettid,
    SYS_getpid,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getrusage,
    SYS_getrandom,
    SYS_sysinfo,
    SYS_uname,
    SYS_sendto,
    SYS_sendmsg,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_ppoll,
    SYS_membarrier,
#ifdef SYS_poll
    SYS_poll,
#endif
#ifdef SYS_time
    SYS_time,
#endif
};

} // namespace klineage::process
