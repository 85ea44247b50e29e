// SPDX-License-Identifier: GPL-3.0-or-later
// What a lineage had to compute, the trials that stand for it, and how somebody else looks again.
#include "core/base/listtext.h"
#include "core/base/numbertext.h"
#include "core/report/figuretext.h"
#include "core/report/parts.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace klineage::report {

namespace {

using lineage::Lineage;
using workload::Case;
using workload::Workload;

constexpr std::size_t shaDigits = 12;
constexpr int amountDigits = 4;

/// "137.4 G" of 1.374e11.
std::string amountText(double amount)
{
    struct Prefix {
        double factor;
        const char *symbol;
    };
    constexpr std::array prefixes{Prefix{1e12, "T"}, Prefix{1e9, "G"}, Prefix{1e6, "M"}, Prefix{1e3, "k"}};
    for (const Prefix &prefix : prefixes) {
        if (amount >= prefix.factor)
            return digitsText(amount / prefix.factor, amountDigits) + ' ' + prefix.symbol;
    }
    return significantText(amount, amountDigits) + ' ';
}

std::string tensorsText(const Workload &workload, workload::Role role)
{
    std::vector<std::string> texts;
    for (const workload::Tensor &tensor : workload.tensors) {
        if (tensor.role != role)
            continue;
        std::vector<std::string> extents;
        for (const kernel::Expression &extent : tensor.shape)
            extents.push_back(extent.text());
        texts.push_back(tensor.name + ": " + kernel::toString(tensor.dtype) + " [" + joined(extents) + "]");
    }
    return joined(texts, "; ");
}

std::string timedText(const Workload &workload, const Case &timed)
{
    std::vector<std::string> axes;
    for (const std::string &axis : workload.axes) {
        if (const auto found = timed.axes.find(axis); found != timed.axes.end())
            axes.push_back(axis + " = " + std::to_string(found->second));
    }
    std::string text = joined(axes);
    const kernel::Bindings bindings = workload.bindings(timed);
    const Result<double> flops = workload.flops.evaluateReal(bindings);
    const Result<double> bytes = workload.bytes.evaluateReal(bindings);
    if (flops && *flops > 0)
        text += "; " + amountText(*flops) + "FLOP a run";
    if (bytes && *bytes > 0)
        text += "; at least " + amountText(*bytes) + "B to and from memory";
    return text;
}

/// "13 cases: timed, odd, …; exact: bits; shape drawn anew for each trial: hidden"
std::string casesText(const Workload &workload)
{
    std::vector<std::string> all;
    std::vector<std::string> exact;
    std::vector<std::string> drawn;
    for (const Case &c : workload.cases) {
        all.push_back(c.name);
        if (c.exact)
            exact.push_back(c.name);
        if (!c.drawn.empty())
            drawn.push_back(c.name);
    }
    return std::to_string(all.size()) + ": " + joined(all)
           + (exact.empty() ? "" : "; to the last bit: " + joined(exact))
           + (drawn.empty() ? "" : "; of a shape drawn anew for each trial: " + joined(drawn));
}

std::string toleranceText(const Workload &workload, const Case &timed)
{
    const Result<workload::Tolerance> limits = workload.toleranceFor(timed);
    if (!limits)
        return {};
    if (limits->exact)
        return "none: the oracle's values, rounded to the output's type";
    std::string text = "relative error of the whole output at most " + significantText(limits->relL2, 3)
                       + " (2-norm); of each element at most " + significantText(limits->rtol, 3)
                       + " of it and " + significantText(limits->atol, 3)
                       + " of the output's root mean square";
    if (limits->rowSum > 0)
        text += "; each row sums to 1 within " + significantText(limits->rowSum, 3);
    return text + (limits->reason.empty() ? "" : ". " + limits->reason);
}

std::string seedsText(const gate::Trial &trial)
{
    if (!trial.replayOf.empty())
        return "those of trial " + trial.replayOf;
    if (trial.seeds.empty())
        return nothing;
    return std::to_string(trial.seeds.front())
           + (trial.seeds.size() > 1 ? " and " + std::to_string(trial.seeds.size() - 1) + " more" : "");
}

std::string roundsText(const gate::Trial &trial)
{
    const auto own = std::find_if(trial.samples.begin(), trial.samples.end(),
                                  [](const gate::Samples &s) { return s.subject == "candidate"; });
    return own == trial.samples.end() || own->ns.empty() ? nothing : std::to_string(own->ns.size());
}

/// "2026-11-21 10:45:44" of "2026-11-21T10:45:44.030Z".
std::string timeText(const std::string &time)
{
    std::string text = time.substr(0, 19);
    std::replace(text.begin(), text.end(), 'T', ' ');
    return text.empty() ? nothing : text;
}

/// A word of a shell command, whatever is in it.
std::string wordText(const std::string &word)
{
    constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./";
    if (word.find_first_not_of(plain) == std::string::npos)
        return word;
    std::string quoted = "'";
    for (const char c : word)
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

} // namespace

void addContract(Document &document, const Workspace &workspace, const Lineage &lineage)
{
    const Workload *workload = workspace.findWorkload(lineage.workload);
    if (!workload || workload->cases.empty())
        return;
    const Case &timed = workload->cases.front();
    Facts facts;
    facts.add("Operator", workload->name + (workload->title.empty() ? "" : ": " + workload->title));
    facts.add("Computes", workload->description);
    facts.add("Inputs", tensorsText(*workload, workload::Role::Input));
    facts.add("Outputs", tensorsText(*workload, workload::Role::Output));
    facts.add("Timed case", timedText(*workload, timed));
    facts.add("Checked cases", casesText(*workload));
    facts.add("Compared with", "oracle " + workload->oracle);
    facts.add("Error allowed", toleranceText(*workload, timed));
    document.blocks.emplace_back(Heading{"What it must compute"});
    document.blocks.emplace_back(std::move(facts));
}

Table trialTable(const Lineage &lineage)
{
    Table table{{{"Trial"},
                 {"Of"},
                 {"Recorded, UTC"},
                 {"Rounds", true},
                 {"Seeds"},
                 {"Trust"},
                 {"Gate"},
                 {"Candidate, SHA-256"}},
                {}};
    const auto add = [&table](const std::string &id, const gate::Trial *trial) {
        if (trial)
            table.rows.push_back({trial->id, id, timeText(trial->time), roundsText(*trial), seedsText(*trial),
                                  gate::toString(trial->trust),
                                  trial->gateVersion.empty() ? nothing : trial->gateVersion,
                                  trial->candidate.substr(0, shaDigits)});
    };
    for (const lineage::State &state : lineage.states)
        add(state.id, lineage.trialOf(state));
    for (const lineage::Attempt &attempt : lineage.attempts)
        add(attempt.id, lineage.trialOf(attempt));
    return table;
}

Commands lineageCommands(const Lineage &lineage)
{
    Commands commands;
    const std::string key = wordText(lineage.key());
    commands.lines.push_back(
        {"Files, trials and transitions hold together:", "klineage-cli lineage verify " + key});
    if (lineage.states.size() > 1) {
        const lineage::State &best = lineage.states.back();
        const lineage::Transition *step = lineage.transitionTo(best.id);
        const std::string file =
            "workloads/" + lineage.workload + "/lineages/" + lineage.folder() + "/" + best.file;
        commands.lines.push_back(
            {"The strongest state again, on a device of this platform, with inputs that nobody knows yet:",
             "klineage-cli gate run " + wordText(file) + " --workload " + wordText(lineage.workload)
                 + (step ? " --parent " + wordText(step->from) : "") + " --precise"});
    }
    if (!lineage.states.empty())
        commands.lines.push_back({"All states and attempts again, there:",
                                  "klineage-cli lineage jobs " + key
                                      + " > jobs.jsonl\nklineage-gate batch jobs.jsonl --out trials.jsonl"});
    return commands;
}

} // namespace klineage::report
