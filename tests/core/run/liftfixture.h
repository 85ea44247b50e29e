// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "core/run/lift/storecard.h"
#include "core/workspace/citations.h"
#include "tests/core/run/learnfixture.h"

#include <string>
#include <vector>

namespace klineage::tests {

using namespace klineage::run;

/// What an author may say of a card; the parts that tests change.
struct Said {
    std::string name = "add-a";
    std::string intent = "Add the optimization to the loop.";
    std::string effect = "It brings 2.0×.";
    std::string citation = {}; ///< empty: the first that is given
    std::string more = {};     ///< further TOML
};

inline std::string firstCitation(const std::string &prompt)
{
    const std::size_t list = prompt.find("# Citations that may be used");
    const std::size_t begin = prompt.find("- `", list) + 3;
    return prompt.substr(begin, prompt.find('`', begin) - begin);
}

inline std::string cardReply(const llm::Request &request, const Said &said = {})
{
    const std::string citation =
        '"' + (said.citation.empty() ? firstCitation(request.messages[0].text) : said.citation) + '"';
    const auto claim = [&](const char *head, const std::string &text) {
        return std::string(head) + "\ntext = \"" + text + "\"\nevidence = [" + citation + "]\n";
    };
    return block("name = \"" + said.name + "\"\nlocus = \"inner loop\"\ncarrier = '''\n+ int opt = 1;\n'''\n"
                     + said.more + claim("[intent]", said.intent) + claim("[anchor]", "Any loop.")
                     + claim("[[precondition]]", "There is a loop.") + claim("[[effect]]", said.effect)
                     + claim("[[risk]]", "Where there is none, nothing comes of it.")
                     + "[[provides]]\nlocus = \"inner loop\"\nname = \"opt\"\n",
                 "toml");
}

inline gate::Trial trialOf(ToyGate &gate, const std::string &workload, const std::string &text,
                           const std::string &parent)
{
    gate::GateRequest request;
    request.workloadDirectory = workload;
    request.candidateText = text;
    request.parentText = parent;
    Result<gate::Trial> trial = gate.function()(request, {}, {});
    if (!trial)
        qFatal("%s", trial.error().message.c_str());
    return std::move(*trial);
}

/// A world with measured lineages.
class LiftWorld : public LearnWorld
{
public:
    LiftWorld()
    {
        settings.kind = Kind::Lift;
        settings.workload.clear();
        settings.platform.clear();
        settings.subject.clear();
    }
    LiftWorld(const fs::path &snapshot, const Settings &of)
        : LearnWorld(snapshot, of)
    {}

    /// Each step adds a line: {"opt_a", "inner loop"}.
    void addLineage(const std::string &workload,
                    const std::vector<std::pair<std::string, std::string>> &added)
    {
        const std::string folder = "workloads/" + workload + "/lineages/pocl/";
        std::string toml = read("workloads/toy/workload.toml");
        toml.replace(toml.find("\"toy\""), 5, '"' + workload + '"');
        if (workload != "toy")
            write("workloads/" + workload + "/workload.toml", toml);
        lineage::Lineage lineage;
        lineage.workload = workload;
        lineage.platform = "pocl";
        lineage.title = "t";
        std::vector<std::string> lines;
        std::string before;
        std::string trials;
        for (std::size_t i = 0; i <= added.size(); ++i) {
            if (i > 0)
                lines.push_back(added[i - 1].first);
            const std::string text = toyKernel(lines, "// " + workload + '\n');
            const std::string id = "K0" + std::to_string(i);
            const gate::Trial trial = trialOf(gate, workload, text, before);
            trials += gate::writeTrial(trial) + '\n';
            write(folder + id + ".cl", text);
            lineage.states.push_back({id, id + ".cl", "state " + std::to_string(i), trial.id});
            if (i > 0)
                lineage.transitions.push_back({lineage.states[i - 1].id,
                                               id,
                                               added[i - 1].first,
                                               added[i - 1].second,
                                               "Add " + added[i - 1].first + '.',
                                               {},
                                               {},
                                               {},
                                               {}});
            before = text;
        }
        const std::string wrong = toyKernel({"wrong"}, "// " + workload + '\n');
        const gate::Trial rejected = trialOf(gate, workload, wrong, read(folder + "K00.cl"));
        trials += gate::writeTrial(rejected) + '\n';
        write(folder + "R00a.cl", wrong);
        lineage.attempts.push_back({"R00a", "K00", "R00a.cl", "wrong", added[0].first, "inner loop",
                                    "It forgets the tail.", rejected.id});
        write(folder + "trials.jsonl", trials);
        write(folder + "lineage.toml", lineage::writeLineage(lineage));
    }
    [[nodiscard]] std::vector<skills::CardRecord> cards() const
    {
        std::vector<Error> problems;
        std::vector<skills::CardRecord> records = skills::CardStore(root() / "skills").readAll(&problems);
        for (const Error &problem : problems)
            qFatal("%s", problem.message.c_str());
        return records;
    }
};

inline std::string codeOf(const Result<Ending> &ending)
{
    return ending ? ending->code : "error: " + ending.error().message;
}

} // namespace klineage::tests
