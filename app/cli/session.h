// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/workspace.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace klineage::cli {

inline constexpr int exitOk = 0;
inline constexpr int exitNegative = 1;    ///< the verdict, lint or check says no
inline constexpr int exitUsage = 2;       ///< wrong options or unknown names
inline constexpr int exitEnvironment = 3; ///< files, devices or drivers failed

/// What all verbs share: the global options, the workspace, output and the exit status. One thread.
class Session
{
public:
    void addGlobalOptions(CLI::App &app);
    /// Adds a verb that takes the global options too, before or after its own, and runs `run` when it was named.
    CLI::App *addVerb(CLI::App &group, const std::string &name, const std::string &description,
                      std::function<int()> run);
    static CLI::App *addGroup(CLI::App &app, const std::string &name, const std::string &description);

    [[nodiscard]] bool json() const { return m_json; }
    [[nodiscard]] int exitStatus() const { return m_exitStatus; }

    /// --workspace, or the nearest one at or above the current folder, or above the program, or the installed example.
    [[nodiscard]] Result<std::filesystem::path> workspaceRoot() const;
    [[nodiscard]] Result<Workspace> openWorkspace() const;
    /// For what is made anew: --workspace, or the nearest one at or above the current folder, or that folder, which becomes one: nothing is
    /// written into a workspace that the program lies in, or that was installed. The folders of a workspace are made where they are missing.
    [[nodiscard]] Result<std::filesystem::path> workspaceToWrite() const;

    /// Print the problem (JSON: {"error": {code, message, detail}}) and return the exit status.
    int fail(const Error &error) const;
    int usage(const std::string &message) const;
    /// Usage with a suggestion: "There is no <what> '<name>' …; did you mean 'x'?"
    int unknownName(const std::string &what, const std::string &name,
                    const std::vector<std::string> &known) const;
    /// One document, indented, on stdout.
    void print(const nlohmann::json &document) const;

private:
    void printProblem(const Error &error) const;

    std::filesystem::path m_workspace;
    bool m_json = false;
    int m_exitStatus = exitOk;
};

} // namespace klineage::cli
