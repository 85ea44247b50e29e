// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/syscallfilter.h"

#include "core/process/syscalllists.h"
#include "core/process/syscallnumbers.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

// Newer than the oldest headers that this is built with; the same numbers on every architecture.
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#endif
#ifndef SYS_removexattrat
#define SYS_removexattrat 466
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
#ifndef SYS_file_setattr
#define SYS_file_setattr 469
#endif

namespace klineage::process {

namespace {

#if defined(__x86_64__)
constexpr unsigned architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned architecture = AUDIT_ARCH_AARCH64;
#else
constexpr unsigned architecture = 0;
#endif

constexpr unsigned refusal = SECCOMP_RET_ERRNO | EPERM;
constexpr unsigned unknownCall = SECCOMP_RET_ERRNO | ENOSYS;

/// Refused whatever the arguments.
constexpr long refused[] = {
    // other processes
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_process_mrelease,
    SYS_kcmp,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_tkill,
    SYS_setsid,
    SYS_setpgid,
    // namespaces and mounts
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_open_tree,
    SYS_open_tree_attr,
    SYS_mount_setattr,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_quotactl,
    SYS_swapon,
    SYS_swapoff,
    // the kernel
    SYS_bpf,
    SYS_perf_event_open,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_userfaultfd,
    SYS_memfd_secret,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    SYS_reboot,
    SYS_syslog,
    SYS_acct,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_vhangup,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
    // what Landlock leaves alone: properties of files, and truncation by name before its ABI 3
    SYS_truncate,
    SYS_fchmodat,
    SYS_fchmodat2,
    SYS_fchownat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_setxattrat,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_removexattrat,
    SYS_utimensat,
    SYS_file_setattr,
#ifdef SYS_chmod
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
#endif
};

constexpr unsigned newNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

constexpr unsigned setOwner = 8; // F_SETOWN, F_SETOWN_EX: signals on behalf of the kernel
constexpr unsigned setOwnerExtended = 15;
constexpr unsigned ioctlSetOwner = 0x8901; // FIOSETOWN, SIOCSPGRP
constexpr unsigned ioctlSetGroup = 0x8902;
constexpr unsigned ioctlTypeInto = 0x5412; // TIOCSTI

} // namespace

void SyscallFilter::load(unsigned offset)
{
    m_program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

void SyscallFilter::answer(long call, unsigned action)
{
    m_program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    m_program.push_back(BPF_STMT(BPF_RET | BPF_K, action));
}

void SyscallFilter::refuse(long call)
{
    answer(call, refusal);
}

namespace {
// Arguments of these calls are ints, of which the kernel looks at the low half.
constexpr unsigned argumentOffset(unsigned argument)
{
    return static_cast<unsigned>(offsetof(seccomp_data, args) + 8 * argument);
}
constexpr unsigned numberOffset = offsetof(seccomp_data, nr);
} // namespace

void SyscallFilter::onlyWhen(long call, unsigned argument, std::vector<unsigned> values, bool orSelf)
{
    if (orSelf)
        values.push_back(0);
    const auto checks = static_cast<std::uint8_t>(2 * values.size());
    m_program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0,
                                 static_cast<std::uint8_t>(checks + 2)));
    load(argumentOffset(argument));
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (orSelf && i + 1 == values.size())
            m_self.push_back(m_program.size());
        m_program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, values[i], 0, 1));
        m_program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
    m_program.push_back(BPF_STMT(BPF_RET | BPF_K, refusal));
}

// What follows may look at the same call again, so these two load its number again.
void SyscallFilter::refuseValue(long call, unsigned argument, const std::vector<unsigned> &values)
{
    const auto checks = static_cast<std::uint8_t>(2 * values.size());
    m_program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0,
                                 static_cast<std::uint8_t>(checks + 2)));
    load(argumentOffset(argument));
    for (const unsigned value : values) {
        m_program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
        m_program.push_back(BPF_STMT(BPF_RET | BPF_K, refusal));
    }
    load(numberOffset);
}

void SyscallFilter::onlyBits(long call, unsigned argument, unsigned bits)
{
    m_program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 4));
    load(argumentOffset(argument));
    m_program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0));
    m_program.push_back(BPF_STMT(BPF_RET | BPF_K, refusal));
    load(numberOffset);
}

void SyscallFilter::refuseBits(long call, unsigned argument, unsigned bits)
{
    m_program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 4));
    load(argumentOffset(argument));
    m_program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    m_program.push_back(BPF_STMT(BPF_RET | BPF_K, refusal));
    load(numberOffset);
}

void SyscallFilter::allow(long call)
{
    answer(call, SECCOMP_RET_ALLOW);
}

void SyscallFilter::begin()
{
    load(offsetof(seccomp_data, arch));
    // 32-bit calls of the same kernel have other numbers.
    m_program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0));
    m_program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    load(numberOffset);
#ifdef __x86_64__
    m_program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1)); // x32
    m_program.push_back(BPF_STMT(BPF_RET | BPF_K, unknownCall));
#endif
}

/// What holds whichever list there is.
void SyscallFilter::addCommonRules()
{
    // Its flags lie in memory, where a filter cannot look; the C library then uses clone.
    answer(SYS_clone3, unknownCall);
    // A child of its parent's would be nobody's to kill.
    refuseBits(SYS_clone, 0, newNamespaces | CLONE_PARENT);
    // Not even itself with SIGKILL: who sees an isolated process die of it knows that it was killed from outside.
    refuseValue(SYS_kill, 1, {SIGKILL});
    refuseValue(SYS_tgkill, 2, {SIGKILL});
    refuseValue(SYS_rt_sigqueueinfo, 1, {SIGKILL});
    refuseValue(SYS_rt_tgsigqueueinfo, 2, {SIGKILL});
    onlyWhen(SYS_kill, 0, {}, true);
    onlyWhen(SYS_tgkill, 0, {}, true);
    onlyWhen(SYS_rt_sigqueueinfo, 0, {}, true);
    onlyWhen(SYS_rt_tgsigqueueinfo, 0, {}, true);
    onlyWhen(SYS_prlimit64, 0, {0}, true);
    onlyWhen(SYS_setpriority, 1, {0}, true);
    onlyWhen(SYS_ioprio_set, 1, {0}, true);
    onlyWhen(SYS_migrate_pages, 0, {0}, true);
    onlyWhen(SYS_move_pages, 0, {0}, true);
    refuseValue(SYS_fcntl, 1, {setOwner, setOwnerExtended});
    refuseValue(SYS_ioctl, 1, {ioctlSetOwner, ioctlSetGroup, ioctlTypeInto});
}

void SyscallFilter::addRefused()
{
    for (const long call : refused)
        refuse(call);
    addCommonRules();
    m_program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

void SyscallFilter::addListed(const Isolation &isolation)
{
    // Each of these would change how fast another process runs, or this one beside it.
    for (const long call : {SYS_setpriority, SYS_ioprio_set, SYS_migrate_pages, SYS_move_pages})
        refuse(call);
    if (!isolation.startsPrograms)
        onlyBits(SYS_clone, 0, CLONE_THREAD);
    addCommonRules();
    allow(SYS_fcntl);
    allow(SYS_ioctl);
    allow(SYS_execve); // the program itself is still to come
    for (const long call : computingCalls)
        allow(call);
    if (isolation.startsPrograms) {
        for (const long call : startingCalls)
            allow(call);
    }
    m_program.push_back(BPF_STMT(BPF_RET | BPF_K, refusal));
}

SyscallFilter SyscallFilter::make(const Isolation &isolation)
{
    SyscallFilter filter;
    if (architecture == 0)
        return filter;
    filter.begin();
    if (isolation.localSockets)
        filter.onlyWhen(SYS_socket, 0, {AF_UNIX}, false);
    else
        filter.refuse(SYS_socket);
    if (isolation.systemCalls == SystemCalls::Listed)
        filter.addListed(isolation);
    else
        filter.addRefused();
    return filter;
}

SyscallFilter SyscallFilter::sealed()
{
    SyscallFilter filter;
    if (architecture == 0)
        return filter;
    filter.begin();
    filter.refuseBits(SYS_mmap, 2, PROT_EXEC);
    filter.refuseBits(SYS_mprotect, 2, PROT_EXEC);
    filter.refuseValue(SYS_tgkill, 2, {SIGKILL});
    filter.onlyWhen(SYS_tgkill, 0, {}, true); // a process that aborts itself
    filter.allow(SYS_mmap);
    filter.allow(SYS_mprotect);
    for (const long call : sealedCalls)
        filter.allow(call);
    filter.m_program.push_back(BPF_STMT(BPF_RET | BPF_K, refusal));
    return filter;
}

int SyscallFilter::install(unsigned flags) noexcept
{
    const auto self = static_cast<unsigned>(::getpid());
    for (const std::size_t at : m_self)
        m_program[at].k = self;
    const sock_fprog program{static_cast<unsigned short>(m_program.size()), m_program.data()};
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0 ? 0 : errno;
}

int SyscallFilter::enter() noexcept
{
    return install(0);
}

int SyscallFilter::enterEverywhere() noexcept
{
    return install(SECCOMP_FILTER_FLAG_TSYNC);
}

} // namespace klineage::process
