// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/session.h"

namespace CLI {
class App;
}

namespace klineage::cli {

// One function a verb group: adds the verbs with their options. A verb runs inside app.parse() and leaves its exit status in the
// session. The session must outlive the app's parsing.

void addDoctor(CLI::App &app, Session &session);
void addWorkloadCommands(CLI::App &app, Session &session);
void addNewWorkload(CLI::App &group, Session &session);   ///< `workload new`
void addProblemImport(CLI::App &group, Session &session); ///< `workload import`
void addLineageCommands(CLI::App &app, Session &session);
void addRederiveCommand(CLI::App &group, Session &session);  ///< `lineage rederive`
void addRoundtripCommand(CLI::App &group, Session &session); ///< `lineage roundtrip`
void addNewLineage(CLI::App &group, Session &session);       ///< `lineage new`
void addArchiveImport(CLI::App &group, Session &session);    ///< `lineage import`
void addLineageExport(CLI::App &group, Session &session);    ///< `lineage export`
void addCommentsCommand(CLI::App &group, Session &session);  ///< `lineage comments`
void addExplainCommand(CLI::App &group, Session &session);   ///< `lineage explain`
void addWalksCommand(CLI::App &group, Session &session);     ///< `lineage walks`
void addGateCommands(CLI::App &app, Session &session);
void addTuneCommand(CLI::App &group, Session &session); ///< `gate tune`
void addSassCommand(CLI::App &app, Session &session);
void addCardCommands(CLI::App &app, Session &session);
void addCardExchange(CLI::App &group, Session &session); ///< `card import`, `card export`
void addTrialCommands(CLI::App &app, Session &session);
void addLlmCommands(CLI::App &app, Session &session); ///< `llm ask`, `llm prices`
void addRunCommands(CLI::App &app, Session &session);
void addRunViews(CLI::App &group, Session &session); ///< `run list`, `run show`, `run export`
void addPoolCommands(CLI::App &app, Session &session);
void addExperimentCommands(CLI::App &app, Session &session);
void addReportCommand(CLI::App &app, Session &session);
/// `lineage deoptimize`, `card lift`, `card admit`; the groups must be there.
void addLearnCommands(CLI::App &app, Session &session);

/// `gate corpus`: the gate program's own verb under the same options.
void addCorpusCommand(CLI::App &group, Session &session);
/// `workload check`: exit status 1 when the timed case shows nothing.
int checkWorkload(const Session &session, const workload::Workload &workload);

/// `lineage table`: prints the tables of the given lineages and the geometric mean over them.
int printLineageTables(const Session &session, const std::vector<lineage::Lineage> &lineages);
/// `lineage table --csv`: a line a state and a rejected attempt, the columns of resources/python/klineage.py.
int writeLineageCsv(const Session &session, const std::vector<lineage::Lineage> &lineages,
                    const std::string &file);
/// The lineages of these keys (all when empty); on an unknown key the exit status of the usage error.
[[nodiscard]] tl::expected<std::vector<lineage::Lineage>, int> chooseLineages(
    const Session &session, const std::vector<std::string> &keys);

} // namespace klineage::cli
