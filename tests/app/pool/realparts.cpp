// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/pool/realparts.h"

#include "core/base/random.h"
#include "core/files/tomlwriter.h"
#include "tests/patience.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <fstream>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace klineage::gate::test {

namespace fs = std::filesystem;
using process::ChildProcess;
using process::Deadline;

std::string installed(const std::string &program)
{
    const char *path = std::getenv("PATH");
    std::string rest = std::string(path ? path : "") + ":/usr/sbin:/sbin:/usr/local/sbin";
    for (std::size_t begin = 0; begin < rest.size();) {
        const std::size_t end = std::min(rest.find(':', begin), rest.size());
        const fs::path candidate = fs::path(rest.substr(begin, end - begin)) / program;
        if (::access(candidate.c_str(), X_OK) == 0)
            return candidate.string();
        begin = end + 1;
    }
    return {};
}

int freePort()
{
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    int port = 0;
    if (::bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0
        && ::getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length) == 0)
        port = ntohs(address.sin_port);
    ::close(fd);
    return port;
}

Output runProgram(const std::vector<std::string> &command)
{
    process::ChildOptions options;
    options.command = command;
    auto child = ChildProcess::start(options);
    if (!child)
        return {false, child.error().message};
    const auto status = child->wait(Deadline::in(patienceSeconds));
    return {status && status->ok(), child->standardOutput().text + child->standardError().text};
}

std::string SshServer::user()
{
    const passwd *entry = ::getpwuid(::geteuid());
    return entry ? entry->pw_name : "root";
}

SshServer::SshServer(fs::path folder)
    : m_folder(std::move(folder))
    , m_port(freePort())
{
    const std::string sshd = installed("sshd");
    if (sshd.empty() || installed("ssh").empty() || installed("ssh-keygen").empty()) {
        m_problem = "ssh or sshd is not installed (packages openssh-client, openssh-server).";
        return;
    }
    std::error_code ignored;
    fs::create_directories(m_folder, ignored);
    if (::geteuid() == 0)
        fs::create_directories("/run/sshd", ignored);   // sshd asks for it, and its service is what makes it
    fs::create_directories(m_folder / "home", ignored); // whoever logs in is at home there
    for (const char *key : {"host", "good", "bad"})
        (void)runProgram({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", m_folder / key});
    fs::copy_file(m_folder / "good.pub", m_folder / "authorized", ignored);
    std::ifstream hostKey(m_folder / "host.pub");
    std::string kind;
    std::string key;
    hostKey >> kind >> key;
    writeText(m_folder / "known", "[127.0.0.1]:" + std::to_string(m_port) + " " + kind + " " + key + "\n");
    writeText(
        m_folder / "config",
        "Port " + std::to_string(m_port) + "\nListenAddress 127.0.0.1\nHostKey "
            + (m_folder / "host").string() + "\nAuthorizedKeysFile " + (m_folder / "authorized").string()
            + "\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
              "PermitRootLogin prohibit-password\nPidFile none\nMaxStartups 100\nSetEnv HOME="
            + (m_folder / "home").string() + "\n");
    process::ChildOptions daemon;
    daemon.command = {sshd, "-D", "-e", "-f", m_folder / "config"};
    auto started = ChildProcess::start(daemon);
    if (!started) {
        m_problem = started.error().message;
        return;
    }
    m_server = std::move(*started);
    std::vector<std::string> command = {"ssh"};
    for (const std::string &word : options())
        command.push_back(word);
    command.insert(command.end(), {"-o", "BatchMode=yes", user() + "@127.0.0.1", "true"});
    Output last;
    for (int tries = 0; tries < 50; ++tries) {
        last = runProgram(command);
        if (last.ok)
            return;
        ::usleep(100'000);
    }
    m_server.drain();
    m_problem = "sshd cannot be reached on the loopback: " + last.text + m_server.standardError().text;
}

std::vector<std::string> SshServer::options(bool withGoodKey) const
{
    return {"-F", "none",
            "-p", std::to_string(m_port),
            "-i", m_folder / (withGoodKey ? "good" : "bad"),
            "-o", "IdentitiesOnly=yes",
            "-o", "UserKnownHostsFile=" + (m_folder / "known").string()};
}

std::string SshServer::options(const std::vector<std::string> &more, bool withGoodKey) const
{
    std::vector<std::string> words = options(withGoodKey);
    words.insert(words.begin(), more.begin(), more.end());
    files::TomlWriter writer;
    writer.string("ssh", user() + "@127.0.0.1");
    writer.strings("ssh_options", words);
    return writer.text();
}

SlurmCluster::SlurmCluster(fs::path folder)
    : m_folder(std::move(folder))
{
    for (const char *program : {"slurmctld", "slurmd", "srun", "salloc", "scontrol", "squeue", "munged"}) {
        if (installed(program).empty()) {
            m_problem =
                std::string(program) + " is not installed (packages slurmctld, slurmd, slurm-client, munge).";
            return;
        }
    }
    if (::geteuid() != 0) {
        m_problem = "slurmd starts jobs as root alone.";
        return;
    }
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    m_node = std::string(name).substr(0, std::string(name).find('.'));
    for (const char *each : {"", "state", "spool", "munge"})
        fs::create_directories(m_folder / each);
    fs::permissions(m_folder, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec
                                  | fs::perms::group_read | fs::perms::others_read);
    fs::permissions(m_folder / "munge", fs::perms::owner_all);
    std::string key;
    while (key.size() < 256)
        key += randomId();
    writeText(m_folder / "munge" / "key", key);
    fs::permissions(m_folder / "munge" / "key", fs::perms::owner_read | fs::perms::owner_write);
    const std::string at = m_folder.string();
    const std::string socket = at + "/munge.sock";
    if (!start("munged", {"--foreground", "--force", "--key-file=" + at + "/munge/key", "--socket=" + socket,
                          "--pid-file=" + at + "/munge/pid", "--log-file=" + at + "/munge/log",
                          "--seed-file=" + at + "/munge/seed"}))
        return;
    for (int tries = 0; tries < 100 && !fs::exists(socket); ++tries)
        ::usleep(100'000);
    writeText(
        m_folder / "slurm.conf",
        "ClusterName=test\nSlurmctldHost=" + m_node
            + "(127.0.0.1)\nSlurmUser=root\nAuthType=auth/munge\nAuthInfo=socket=" + socket
            + "\nCredType=cred/munge\nSlurmctldPort=" + std::to_string(freePort()) + "\nSlurmdPort="
            + std::to_string(freePort()) + "\nStateSaveLocation=" + at + "/state\nSlurmdSpoolDir=" + at
            + "/spool\nSlurmctldPidFile=" + at + "/ctld.pid\nSlurmdPidFile=" + at
            + "/d.pid\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSwitchType=switch/none\n"
              "MpiDefault=none\nReturnToService=2\nSchedulerType=sched/backfill\n"
              "SchedulerParameters=sched_interval=1,bf_interval=1\nSelectType=select/cons_tres\n"
              "SelectTypeParameters=CR_Core\nSlurmdParameters=config_overrides\n"
              "JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\nKillWait=1\n"
              "NodeName="
            + m_node + " NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN\nPartitionName=debug Nodes=" + m_node
            + " Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO\n");
    ::setenv("SLURM_CONF", (m_folder / "slurm.conf").c_str(), 1);
    const std::string version = runProgram({installed("slurmd"), "-V"}).text; // "slurm-wlm 22.05.8"
    const std::size_t digit = version.find_first_of("0123456789");
    if (digit != std::string::npos && std::atoi(version.c_str() + digit) >= 23)
        writeText(m_folder / "cgroup.conf", "CgroupPlugin=disabled\n");
    if (!start("slurmctld", {"-D", "-i"}) || !start("slurmd", {"-D"}))
        return;
    Output last;
    for (int tries = 0; tries < 200; ++tries) {
        last = runProgram({"srun", "--immediate=5", "--ntasks=1", "true"});
        if (last.ok)
            return;
        ::usleep(250'000);
    }
    for (ChildProcess &daemon : m_daemons) {
        daemon.drain();
        last.text += daemon.standardError().text;
    }
    m_problem = "Slurm runs no job here: " + last.text;
}

SlurmCluster::~SlurmCluster()
{
    if (m_problem.empty())
        (void)runProgram({"scancel", "--user=root"});
    std::reverse(m_daemons.begin(), m_daemons.end());
    for (ChildProcess &daemon : m_daemons)
        daemon.kill();
}

bool SlurmCluster::start(const std::string &program, const std::vector<std::string> &arguments)
{
    process::ChildOptions options;
    options.command = {installed(program)};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    auto daemon = ChildProcess::start(options);
    if (!daemon) {
        m_problem = daemon.error().message;
        return false;
    }
    m_daemons.push_back(std::move(*daemon));
    return true;
}

std::string SlurmCluster::jobs() const
{
    return runProgram({"squeue", "--noheader", "--format=%i %T"}).text;
}

void SlurmCluster::setNode(const std::string &state) const
{
    (void)runProgram({"scontrol", "update", "NodeName=" + m_node, "State=" + state, "Reason=test"});
}

} // namespace klineage::gate::test
