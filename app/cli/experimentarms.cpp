// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/experimentarms.h"

#include "app/cli/runsession.h"
#include "app/cli/texttable.h"

#include "core/base/numbertext.h"
#include "core/run/experiment/contrast.h"
#include "core/run/experiment/preregistration.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace klineage::cli {

using nlohmann::json;

namespace {

std::string preregistrationText(const run::Experiment &experiment)
{
    const auto registered = run::readPreregistration(experiment);
    if (!registered)
        return registered.error().message;
    return *registered ? "The plan was kept on " + (*registered)->time + ", before the first run."
                       : std::string("The plan was not kept before the first run.");
}

} // namespace

void printArms(const run::Experiment &experiment, const run::ExperimentResults &results)
{
    if (experiment.goals.empty())
        return;
    using Align = TextTable::Align;
    TextTable arms({{"ARM"},
                    {"ROOT"},
                    {"GOAL", Align::Right},
                    {"RUNS", Align::Right},
                    {"REACHED", Align::Right},
                    {"FIRST RIGHT", Align::Right},
                    {"GAIN", Align::Right},
                    {"QUESTIONS", Align::Right},
                    {"COST", Align::Right}});
    for (const run::ArmResult &arm : run::armResults(experiment, results)) {
        const bool reached = arm.reached > 0;
        arms.addRow({arm.policy, arm.root.empty() ? "all" : arm.root,
                     arm.root.empty() ? "" : formatFactor(experiment.goals.at(arm.root)),
                     std::to_string(arm.runs), std::to_string(arm.reached), std::to_string(arm.firstRight),
                     arm.runs > 0 ? formatFactor(arm.gain) : "–", reached ? fixedText(arm.questions, 1) : "–",
                     reached ? formatDollars(arm.dollars) : "–"});
    }
    std::printf(
        "\n%s\nGain: T_root / T_final, paired, of the audited candidate; a run without a better one counts as 1. "
        "Questions and cost: to the goal,\nof the runs that reached it.\n",
        arms.text().c_str());
    for (const run::Contrast &contrast : run::contrasts(experiment, results))
        std::printf(
            "%s against %s over %d roots: %+.0f points of the runs that reach the goal (p = %.3f); gain "
            "%.3f× (%.3f–%.3f, p = %.3f).\n",
            contrast.policy.c_str(), contrast.against.c_str(), contrast.roots, contrast.points,
            contrast.pPoints, contrast.ratio, contrast.low, contrast.high, contrast.pRatio);
    std::printf(
        "The root is the unit; p of a permutation of signs over roots, two-sided; interval of a bootstrap over "
        "roots, 95 %%.\n%s\n",
        preregistrationText(experiment).c_str());
}

void addArmsJson(json &out, const run::Experiment &experiment, const run::ExperimentResults &results)
{
    if (experiment.goals.empty())
        return;
    const auto registered = run::readPreregistration(experiment);
    out["preregistered"] = registered && *registered ? json((*registered)->time) : json();
    out["goals"] = experiment.goals;
    out["arms"] = json::array();
    for (const run::ArmResult &arm : run::armResults(experiment, results))
        out["arms"].push_back({{"policy", arm.policy},
                               {"root", arm.root.empty() ? json() : json(arm.root)},
                               {"runs", arm.runs},
                               {"reached", arm.reached},
                               {"first_right", arm.firstRight},
                               {"gain", arm.runs > 0 ? json(arm.gain) : json()},
                               {"questions_to_goal", arm.reached > 0 ? json(arm.questions) : json()},
                               {"dollars_to_goal", arm.reached > 0 ? json(arm.dollars) : json()}});
    out["contrasts"] = json::array();
    for (const run::Contrast &contrast : run::contrasts(experiment, results))
        out["contrasts"].push_back({{"policy", contrast.policy},
                                    {"against", contrast.against},
                                    {"roots", contrast.roots},
                                    {"points", contrast.points},
                                    {"p_points", contrast.pPoints},
                                    {"gain_ratio", contrast.ratio},
                                    {"low", contrast.low},
                                    {"high", contrast.high},
                                    {"p_gain", contrast.pRatio}});
}

} // namespace klineage::cli
