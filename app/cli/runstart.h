// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/poolchoice.h"
#include "app/cli/session.h"

#include "core/run/drive/estimate.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace klineage::cli {

/// The options of `run start`.
struct StartOptions {
    std::string subject;
    std::string kind = "materialize";
    std::string policy = "klineage";
    std::string workload;
    std::string platform;
    std::string provider;
    std::string model;
    std::string command;
    std::string baseUrl;
    std::string transcript;
    std::string paid;
    std::map<std::string, std::string> toServer; ///< temperature, effort, extra_body
    double cap = 10;
    int steps = 0;
    std::int64_t seed = 0;
    std::string id;
    std::vector<std::string> options; ///< NAME=VALUE
    PoolChoice pool;
    bool hypotheses = false;
    bool heldOut = false;
    bool noAudit = false;
    bool estimateOnly = false;
};

void addStartOptions(CLI::App &verb, StartOptions &options);
/// Which server answers, and what goes to it with each question, by its key in a run's [author]. Both live as long as the verb.
void addServerOptions(CLI::App &verb, std::string &baseUrl, std::map<std::string, std::string> &toServer);
/// Those of them that say who answers, within which budget: for the verbs that start a run of one kind.
void addAuthorOptions(CLI::App &verb, StartOptions &options);

/// What a run is started with, and what it will probably cost; no estimate when replies cost nothing.
struct PreparedRun {
    Workspace workspace;
    run::Settings settings;
    std::optional<run::Estimate> estimate;
};
/// What the options mean, with the estimate said on stderr; the exit status, after saying why, when something about them is wrong.
[[nodiscard]] tl::expected<PreparedRun, int> prepareRun(const Session &session, const StartOptions &options);

/// Creates the run and sees it through; the exit status.
[[nodiscard]] int beginRun(const Session &session, const Workspace &workspace, const run::Settings &settings,
                           const PoolChoice &pool);

} // namespace klineage::cli
