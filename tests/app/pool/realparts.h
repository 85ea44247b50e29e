// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/pool/poolfile.h"
#include "core/process/childprocess.h"
#include "tests/core/pool/fakegate.h"

#include <filesystem>
#include <string>
#include <vector>

/// What the tests of a pool share: programs that run beside them, an sshd and a Slurm.
namespace klineage::gate::test {

/// The program of this name on PATH or among the administrator's; empty: it is not installed.
[[nodiscard]] std::string installed(const std::string &program);
[[nodiscard]] int freePort();

struct Output {
    bool ok = false;
    std::string text; ///< of both streams
};
[[nodiscard]] Output runProgram(const std::vector<std::string> &command);

/// sshd on the loopback, with a key that it takes and one that it does not.
class SshServer
{
public:
    explicit SshServer(std::filesystem::path folder);
    /// Why it cannot run here; empty: it runs.
    [[nodiscard]] const std::string &problem() const { return m_problem; }
    [[nodiscard]] std::vector<std::string> options(bool withGoodKey = true) const;
    [[nodiscard]] std::string options(const std::vector<std::string> &more,
                                      bool withGoodKey = true) const; ///< TOML
    [[nodiscard]] static std::string user();

private:
    std::filesystem::path m_folder;
    int m_port = 0;
    std::string m_problem;
    process::ChildProcess m_server;
};

/// munged, slurmctld and slurmd: a cluster of this machine, with one partition named "debug".
class SlurmCluster
{
public:
    explicit SlurmCluster(std::filesystem::path folder);
    ~SlurmCluster();
    [[nodiscard]] const std::string &problem() const { return m_problem; }
    [[nodiscard]] const std::string &node() const { return m_node; }
    [[nodiscard]] std::string jobs() const; ///< "12 RUNNING\n13 PENDING\n"
    void setNode(const std::string &state) const;

private:
    [[nodiscard]] bool start(const std::string &program, const std::vector<std::string> &arguments);

    std::filesystem::path m_folder;
    std::string m_node;
    std::string m_problem;
    std::vector<process::ChildProcess> m_daemons;
};

} // namespace klineage::gate::test
