// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/mcp/mcpcommand.h"
#include "app/manual/pages.h"
#include "app/version/version.h"

#include <CLI/CLI.hpp>

int main(int argc, char **argv)
{
    using namespace klineage;
    using namespace klineage::cli;

    CLI::App app("KLineage without a window: lineages, SkillCards and the gate.", "klineage-cli");
    app.set_version_flag("--version", std::string("klineage-cli ") + klineage::versionText());
    app.footer(
        "Exit status: 0 ok; 1 the verdict, lint or check is negative; 2 wrong usage; 3 the environment failed.");
    app.require_subcommand(1);

    Session session;
    session.addGlobalOptions(app);
    addDoctor(app, session);
    addWorkloadCommands(app, session);
    addLineageCommands(app, session);
    addGateCommands(app, session);
    addSassCommand(app, session);
    addCardCommands(app, session);
    addTrialCommands(app, session);
    addLlmCommands(app, session);
    addRunCommands(app, session);
    addExperimentCommands(app, session);
    addPoolCommands(app, session);
    addLearnCommands(app, session);
    addReportCommand(app, session);
    addMcpCommand(app, session);

    if (const auto status = manual::generateIfAsked(argc, argv, [&app] { return manual::commandOf(app); }))
        return *status;
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &problem) {
        const bool isHelp = problem.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
        app.exit(problem);
        return isHelp ? exitOk : exitUsage;
    }
    return session.exitStatus();
}
