// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/pool/gatespec.h"
#include "core/process/childprocess.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace klineage::gate {

/// Lines of JSON over the stdin and stdout of a gate that was started. After any error it is to be replaced. One thread.
class Connection
{
public:
    /// A program that is neither named nor left to a shell is looked for here.
    [[nodiscard]] static Result<std::unique_ptr<Connection>> open(GateSpec spec,
                                                                  const std::vector<std::string> &arguments);
    /// A gate that Slurm runs is asked to end, so that its job does: that may take seconds. Any other is killed.
    ~Connection();
    Connection(const Connection &) = delete;
    Connection &operator=(const Connection &) = delete;

    /// Queues a line; it is sent while receiving.
    void send(const nlohmann::json &message);
    /// Timeout: nothing came by then, and the conversation may go on.
    [[nodiscard]] Result<nlohmann::json> receive(process::Deadline deadline, const std::stop_token &stop);

    /// What was started, for messages: a file, or where a shell looked for it.
    [[nodiscard]] std::string name() const
    {
        return m_spec.program.empty() ? m_spec.where : m_spec.program.string();
    }
    /// What its launcher has said on stderr.
    [[nodiscard]] const std::string &said() const { return m_child.standardError().text; }
    /// The gate is no more.
    [[nodiscard]] bool hasEnded() const { return m_hasEnded; }
    /// The last error was the end of the gate, and starting it again will not help.
    [[nodiscard]] bool isHopeless() const { return m_isHopeless; }

private:
    Connection(GateSpec spec, process::ChildProcess child);
    [[nodiscard]] std::optional<Result<nlohmann::json>> takeLine();
    [[nodiscard]] Error ended();
    [[nodiscard]] bool readSome();
    void writeSome();

    GateSpec m_spec;
    process::ChildProcess m_child;
    std::string m_outgoing;
    std::string m_incoming;
    bool m_isHopeless = false;
    bool m_hasEnded = false;
};

} // namespace klineage::gate
