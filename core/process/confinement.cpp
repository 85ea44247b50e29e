// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/confinement.h"

#include "core/process/syscallnumbers.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace klineage::process {

namespace {

/// The program that is executed next gets none but these, also when it runs as root. Without the right to do so there is nothing
/// to drop.
void dropCapabilities(std::uint64_t kept) noexcept
{
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int capability = 0; capability < 64; ++capability) {
        if ((kept >> capability & 1) == 0 && ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
            break; // past the last one
    }
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    if (::syscall(SYS_capget, &header, data) != 0)
        return;
    data[0].inheritable = 0;
    data[1].inheritable = 0;
    ::syscall(SYS_capset, &header, data);
}

constexpr int landlockWorks = 1;
constexpr int seccompWorks = 2;

} // namespace

Result<Confinement> Confinement::make(const Isolation &isolation, const std::vector<std::string> &programs,
                                      const IsolationSupport &support)
{
    Confinement confinement;
    confinement.m_ownProcess = isolation.ownProcess;
    for (const int capability : isolation.capabilities)
        confinement.m_capabilities |= std::uint64_t{1} << capability;
    if (support.seccomp)
        confinement.m_filter = SyscallFilter::make(isolation);
    if (!isolation.confinesFiles || support.landlockAbi == 0
        || (isolation.movesFiles && support.landlockAbi == 1))
        return confinement;
    auto ruleset = landlockRuleset(isolation, programs, support.landlockAbi);
    if (!ruleset)
        return tl::unexpected(ruleset.error());
    confinement.m_ruleset = std::move(*ruleset);
    confinement.m_abi = support.landlockAbi;
    return confinement;
}

int Confinement::enter() noexcept
{
    dropCapabilities(m_capabilities);
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return errno;
    if (m_ruleset) {
        if (const int problem = enterLandlock(m_ruleset.get(), m_ownProcess, m_abi); problem != 0)
            return problem;
    }
    return m_filter.empty() ? 0 : m_filter.enter();
}

/// Asking for a version says little where a container filters system calls, so a child is really confined.
IsolationSupport probeIsolation()
{
    IsolationSupport claimed{landlockAbi(), true};
    auto files = Confinement::make({}, {}, {claimed.landlockAbi, false});
    if (!files) {
        claimed.landlockAbi = 0;
        files = Confinement::make({}, {}, {});
    }
    auto calls = Confinement::make({}, {}, {0, true});
    const pid_t pid = ::fork();
    if (pid < 0)
        return {};
    if (pid == 0) {
        int works = 0;
        if (files->m_ruleset && files->enter() == 0)
            works |= landlockWorks;
        if (!calls->m_filter.empty() && calls->enter() == 0)
            works |= seccompWorks;
        ::_exit(works);
    }
    int raw = 0;
    while (::waitpid(pid, &raw, 0) < 0 && errno == EINTR) {}
    const int works = WIFEXITED(raw) ? WEXITSTATUS(raw) : 0;
    return {(works & landlockWorks) != 0 ? claimed.landlockAbi : 0, (works & seccompWorks) != 0};
}

const IsolationSupport &isolationSupport()
{
    static const IsolationSupport support = probeIsolation();
    return support;
}

Status sealProcess()
{
    SyscallFilter filter = SyscallFilter::sealed();
    const int problem = filter.empty() ? ENOSYS : filter.enterEverywhere();
    if (problem == 0)
        return {};
    return fail(ErrorCode::Unavailable,
                std::string("Cannot seal the process: ") + std::strerror(problem) + ".");
}

std::string describe(const IsolationSupport &support)
{
    const std::string landlock = "Landlock ABI " + std::to_string(support.landlockAbi);
    if (support.landlockAbi > 0)
        return support.seccomp ? landlock + " + seccomp" : landlock + ", no seccomp";
    return support.seccomp ? "seccomp, no Landlock" : "none";
}

} // namespace klineage::process
