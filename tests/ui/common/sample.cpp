// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/common/sample.h"

namespace klineage::ui {

namespace {

gate::Interval around(double value)
{
    return {value, value * 0.999, value * 1.001};
}

skills::CardRecord sampleCard(const std::string &name)
{
    skills::CardRecord record;
    record.card.name = name;
    record.card.category = "tiling";
    record.card.locus = "k-loop operand load";
    record.card.intent.text = "Stage reused tiles of " + name + ".";
    record.card.carrierFile = "carrier.cl";
    record.directory = "/nowhere/skills/" + name;
    return record;
}

skills::CardRecord reviewed(skills::CardRecord record, skills::ReviewVerdict verdict)
{
    skills::Review review;
    review.id = "r1";
    review.time = "2025-01-31T12:00:00Z";
    review.author = "reviewer";
    review.cardRevision = record.card.revision;
    review.verdict = verdict;
    review.reason = "because";
    record.reviews.push_back(review);
    return record;
}

lineage::Lineage sampleLineage()
{
    using gate::Change;
    lineage::Lineage l;
    l.workload = "toy";
    l.platform = "pocl";
    l.title = "toy on a CPU";
    l.directory = "/nowhere/workloads/toy/lineages/pocl";
    const double latencies[] = {800e3, 400e3, 200e3, 100e3};
    const char *titles[] = {"naive", "tiles", "vectors", "unrolled"};
    for (int i = 0; i < 4; ++i) {
        const std::string id = "K0" + std::to_string(i);
        l.states.push_back({id, id + ".cl", titles[i], "t" + id});
        l.trials.push_back(
            sampleTrial("t" + id, latencies[i], i == 0 ? 0 : 2, Change::Gain, 125e3 / latencies[i]));
        if (i > 0)
            l.transitions.push_back({"K0" + std::to_string(i - 1), id, "tiling", "k loop", "Do more at once.",
                                     i == 1 ? "alpha" : ""});
    }
    l.attempts.push_back(
        {"R01a", "K01", "R01a.cl", "other order", "tiling", "k loop", "No faster.", "tR01a"});
    l.trials.push_back(sampleTrial("tR01a", 404e3, 0.99, Change::NoGain, 0));
    l.attempts.push_back(
        {"R02a", "K02", "R02a.cl", "no barrier", "tiling", "k loop", "Reads too early.", "tR02a"});
    gate::Trial wrong = sampleTrial("tR02a", 0, 0, Change::Undecided, 0);
    wrong.verdict.status = gate::VerdictStatus::Wrong;
    wrong.verdict.stage = gate::Stage::Correctness;
    wrong.verdict.message = "y[3] differs.";
    wrong.latencyNs = {};
    l.trials.push_back(wrong);
    addBranch(l, "tB1", "K03");
    return l;
}

} // namespace

gate::Trial sampleTrial(const std::string &id, double latencyNs, double toParent, gate::Change change,
                        double toReference)
{
    gate::Trial trial;
    trial.id = id;
    trial.time = "2025-01-31T12:34:56Z";
    trial.workload = "toy";
    trial.candidate = std::string(64, 'a');
    trial.environment = {"pocl", "a CPU", {}};
    trial.verdict.status = gate::VerdictStatus::Correct;
    trial.verdict.stage = gate::Stage::Profile;
    trial.verdict.reason = "ok";
    trial.verdict.message = "All elements agree.";
    trial.latencyNs = around(latencyNs);
    if (toParent > 0)
        trial.verdict.comparisons.push_back(
            {"parent", "sha", around(toParent), latencyNs * toParent, change});
    if (toReference > 0)
        trial.verdict.comparisons.push_back({"openblas", "openblas 0.3.21", around(toReference),
                                             latencyNs * toReference, gate::Change::Gain});
    return trial;
}

void addBranch(lineage::Lineage &lineage, const std::string &trialId, const std::string &parent)
{
    gate::Trial trial = sampleTrial(trialId, 99e3, 1.01, gate::Change::Undecided, 0);
    trial.file = "branches/" + trialId + ".cl";
    lineage.trials.push_back(trial);
    lineage.branches.push_back({trialId, parent, trial.file});
}

Workspace sampleWorkspace()
{
    Workspace workspace;
    workspace.root = "/nowhere";
    workload::Workload toy;
    toy.name = "toy";
    toy.title = "A toy";
    workspace.workloads.push_back(toy);
    workspace.lineages.push_back(sampleLineage());
    lineage::Lineage ungated;
    ungated.workload = "toy";
    ungated.platform = "sm90";
    ungated.title = "toy on Hopper";
    ungated.directory = "/nowhere/workloads/toy/lineages/sm90";
    ungated.states = {{"K00", "K00.cu", "naive", ""}, {"K01", "K01.cu", "tiles", ""}};
    ungated.transitions.push_back({"K00", "K01", "tiling", "k loop", "Stage tiles.", ""});
    ungated.notices.push_back("The file K01.cu is missing.");
    workspace.lineages.push_back(ungated);
    workspace.cards.push_back(sampleCard("alpha"));
    workspace.cards.push_back(reviewed(sampleCard("beta"), skills::ReviewVerdict::Approve));
    skills::CardRecord delta = sampleCard("delta");
    delta.verifications.push_back({"2025-01-31T12:00:00Z", "toy/pocl/K02", "tK02", 1, "correct", true, true});
    workspace.cards.push_back(delta);
    workspace.cards.push_back(reviewed(sampleCard("gamma"), skills::ReviewVerdict::Reject));
    workspace.problems.push_back({ErrorCode::InvalidInput, "Cannot read bad/workload.toml.", "line 3"});
    return workspace;
}

} // namespace klineage::ui
