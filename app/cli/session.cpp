// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/session.h"

#include "core/base/suggest.h"
#include "core/workspace/installed.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace klineage::cli {

void Session::addGlobalOptions(CLI::App &app)
{
    app.add_option(
           "--workspace", m_workspace,
           "Folder with workloads/ and skills/ (default: the nearest one above, else the installed example)")
        ->type_name("DIR");
    app.add_flag("--json", m_json, "Print one JSON document");
}

CLI::App *Session::addGroup(CLI::App &app, const std::string &name, const std::string &description)
{
    CLI::App *group = app.add_subcommand(name, description);
    group->require_subcommand(1);
    group->fallthrough();
    return group;
}

CLI::App *Session::addVerb(CLI::App &group, const std::string &name, const std::string &description,
                           std::function<int()> run)
{
    CLI::App *verb = group.add_subcommand(name, description);
    addGlobalOptions(*verb);
    verb->fallthrough();
    verb->callback([this, run = std::move(run)] { m_exitStatus = run(); });
    return verb;
}

Result<std::filesystem::path> Session::workspaceRoot() const
{
    if (!m_workspace.empty())
        return m_workspace;
    std::error_code problem;
    const std::filesystem::path here = std::filesystem::current_path(problem);
    Result<std::filesystem::path> found = findWorkspace(here);
    if (found)
        return found;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", problem);
    Result<std::filesystem::path> beside = problem ? found : findWorkspace(program.parent_path());
    if (beside)
        return beside;
    if (const auto installed = installedWorkspace())
        return *installed;
    Error error = found.error();
    error.detail = "Change into a workspace or name one with --workspace DIR.";
    return tl::unexpected(error);
}

Result<std::filesystem::path> Session::workspaceToWrite() const
{
    std::error_code problem;
    std::filesystem::path root = m_workspace;
    if (root.empty()) {
        const std::filesystem::path here = std::filesystem::current_path(problem);
        root = findWorkspace(here).value_or(here);
    }
    for (const char *folder : {"workloads", "skills"}) {
        std::filesystem::create_directories(root / folder, problem);
        if (problem)
            return klineage::fail(ErrorCode::Io, "Cannot make the folder '" + (root / folder).string()
                                                     + "': " + problem.message() + ".");
    }
    return root;
}

Result<Workspace> Session::openWorkspace() const
{
    const Result<std::filesystem::path> root = workspaceRoot();
    if (!root)
        return tl::unexpected(root.error());
    return klineage::openWorkspace(*root);
}

void Session::printProblem(const Error &error) const
{
    if (m_json)
        print({{"error",
                {{"code", toString(error.code)}, {"message", error.message}, {"detail", error.detail}}}});
    std::fprintf(stderr, "klineage-cli: %s\n", error.message.c_str());
    if (!error.detail.empty())
        std::fprintf(stderr, "%s\n", error.detail.c_str());
}

int Session::fail(const Error &error) const
{
    Error said = error;
    if (const auto root = workspaceRoot();
        said.code == ErrorCode::Io && said.detail.empty() && root && isReadOnly(*root))
        said.detail = "This workspace is read-only. Copy it (cp -r " + root->string()
                      + " DIR) and name the copy with --workspace DIR.";
    printProblem(said);
    return exitEnvironment;
}

int Session::usage(const std::string &message) const
{
    printProblem({ErrorCode::InvalidInput, message, {}});
    return exitUsage;
}

int Session::unknownName(const std::string &what, const std::string &name,
                         const std::vector<std::string> &known) const
{
    printProblem({ErrorCode::NotFound, noSuchName(what, name, known), {}});
    return exitUsage;
}

void Session::print(const nlohmann::json &document) const
{
    std::printf("%s\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

} // namespace klineage::cli
