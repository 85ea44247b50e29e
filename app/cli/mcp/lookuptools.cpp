// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cardjson.h"
#include "app/cli/format.h"
#include "app/cli/mcp/tools.h"
#include "app/cli/retrieval.h"

#include "core/base/suggest.h"
#include "core/kernel/candidatetext.h"
#include "core/lineage/step.h"
#include "core/talk/cardtext.h"

namespace klineage::cli {

using mcp::Call;
using mcp::Tool;
using mcp::ToolResult;
using nlohmann::json;

namespace {

json textSchema(const std::string &description, std::size_t most = 256)
{
    return {{"type", "string"}, {"description", description}, {"minLength", 1}, {"maxLength", most}};
}

json objectSchema(json properties, json required = json::array())
{
    json schema{{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
    if (!required.empty())
        schema["required"] = std::move(required);
    return schema;
}

json listOf(json properties)
{
    return {{"type", "array"}, {"items", outputOf(std::move(properties))}};
}

ToolResult unknown(const std::string &what, const std::string &name, const std::vector<std::string> &known)
{
    return mcp::toolError(noSuchName(what, name, known));
}

json lineageKeys(const Workspace &workspace, const std::string &workload)
{
    json keys = json::array();
    for (const lineage::Lineage &lineage : workspace.lineages) {
        if (lineage.workload == workload)
            keys.push_back(lineage.key());
    }
    return keys;
}

ToolResult listWorkloads(const Workspace &workspace, const json &)
{
    json out{{"workloads", json::array()}};
    for (const workload::Workload &workload : workspace.workloads)
        out["workloads"].push_back({{"name", workload.name},
                                    {"title", workload.title},
                                    {"oracle", workload.oracle},
                                    {"lineages", lineageKeys(workspace, workload.name)}});
    return mcp::toolData(std::move(out));
}

ToolResult getWorkload(const Workspace &workspace, const json &arguments)
{
    const std::string name = arguments.at("workload").get<std::string>();
    const workload::Workload *workload = workspace.findWorkload(name);
    if (!workload)
        return unknown("workload", name, workspace.workloadNames());
    json tensors = json::array();
    for (const workload::Tensor &tensor : workload->tensors)
        tensors.push_back({{"name", tensor.name},
                           {"role", tensor.role == workload::Role::Input ? "input" : "output"},
                           {"dtype", kernel::toString(tensor.dtype)},
                           {"rank", tensor.shape.size()}});
    return mcp::toolData({{"name", workload->name},
                          {"title", workload->title},
                          {"description", workload->description},
                          {"axes", workload->axes},
                          {"timed_axes", workload->cases.front().axes},
                          {"tensors", tensors},
                          {"lineages", lineageKeys(workspace, name)},
                          {"workload_toml", workload::writeWorkload(*workload)}});
}

/// What a trial came to, in few words; null without one.
json trialSummary(const gate::Trial *trial)
{
    if (!trial)
        return {};
    json out{{"status", gate::toString(trial->verdict.status)},
             {"reason", trial->verdict.reason},
             {"device", trial->environment.device}};
    if (trial->latencyNs.value > 0)
        out["latency_ns"] = jsonOf(trial->latencyNs);
    for (const gate::Comparison &comparison : trial->verdict.comparisons)
        out["speedup"][comparison.against] = jsonOf(comparison.speedup);
    return out;
}

ToolResult getState(const lineage::Lineage &lineage, const std::string &id)
{
    const std::optional<lineage::RowRef> row = lineage::findRow(lineage, id);
    if (!row) {
        std::vector<std::string> known;
        for (const lineage::State &state : lineage.states)
            known.push_back(state.id);
        for (const lineage::Attempt &attempt : lineage.attempts)
            known.push_back(attempt.id);
        return unknown("state or attempt of " + lineage.key(), id, known);
    }
    const Result<std::string> text = kernel::readCandidateText(row->file);
    if (!text)
        return toolErrorOf(text.error());
    json out{{"lineage", lineage.key()}, {"id", row->id},
             {"title", row->title},      {"parent", row->parent},
             {"source", *text},          {"trial", row->trial ? trialForAgents(*row->trial) : json()}};
    if (const lineage::Transition *step = lineage.transitionTo(id))
        out["transition"] = {{"category", step->category},
                             {"locus", step->locus},
                             {"summary", step->summary},
                             {"card", step->card}};
    return mcp::toolData(std::move(out));
}

ToolResult getLineage(const Workspace &workspace, const json &arguments)
{
    const std::string key = arguments.at("lineage").get<std::string>();
    const lineage::Lineage *lineage = workspace.findLineage(key);
    if (!lineage)
        return unknown("lineage", key, workspace.lineageKeys());
    if (arguments.contains("state"))
        return getState(*lineage, arguments.at("state").get<std::string>());
    json out{{"lineage", key},
             {"surface", kernel::toString(lineage->surface)},
             {"title", lineage->title},
             {"origin", lineage->origin},
             {"termination", lineage->termination},
             {"reason", lineage->reason},
             {"states", json::array()},
             {"transitions", transitionsJson(*lineage)},
             {"attempts", json::array()}};
    for (const lineage::State &state : lineage->states)
        out["states"].push_back(
            {{"id", state.id}, {"title", state.title}, {"trial", trialSummary(lineage->trialOf(state))}});
    for (const lineage::Attempt &attempt : lineage->attempts)
        out["attempts"].push_back({{"id", attempt.id},
                                   {"parent", attempt.parent},
                                   {"title", attempt.title},
                                   {"category", attempt.category},
                                   {"locus", attempt.locus},
                                   {"reason", attempt.reason},
                                   {"trial", trialSummary(lineage->trialOf(attempt))}});
    return mcp::toolData(std::move(out));
}

ToolResult getCard(const Workspace &workspace, const json &arguments)
{
    const std::string name = arguments.at("card").get<std::string>();
    const skills::CardRecord *record = workspace.findCard(name);
    if (!record)
        return unknown("card", name, workspace.cardNames());
    return mcp::toolData(cardJson(*record));
}

ToolResult listCards(const Workspace &workspace, const json &)
{
    std::string index;
    for (const skills::CardRecord &record : workspace.cards)
        index += policy::indexLine(record);
    json data{{"index", index}};
    return {index.empty() ? "There are no cards.\n" : policy::indexLegend + index, std::move(data), false};
}

ToolResult retrieveCards(const Workspace &workspace, const json &arguments)
{
    RetrievalQuestion question;
    question.workload = arguments.value("workload", "");
    question.platform = arguments.value("platform", "");
    question.language = arguments.value("language", "");
    question.state = arguments.value("state", "");
    question.code = arguments.value("code", "");
    question.priorActions = arguments.value("prior_actions", std::vector<std::string>());
    for (const json &feature : arguments.value("features", json::array()))
        question.features.push_back(
            {feature.at("locus").get<std::string>(), feature.at("name").get<std::string>()});
    const Result<skills::Target> target = targetOf(workspace, question);
    if (!target)
        return toolErrorOf(target.error());
    skills::RetrievalOptions options;
    options.hypotheses = arguments.value("hypotheses", false);
    options.perDimension = static_cast<int>(arguments.value("per_dimension", 8.0));
    if (arguments.value("chain", false)) {
        const skills::Chain chain =
            skills::retrieveChain(retrievalIndex(workspace), workspace.cards, *target, options, mostOfChain);
        json data = chainJson(chain);
        data["target"] = targetJson(*target);
        return {chainText(chain, workspace), std::move(data), false};
    }
    const skills::Retrieval found = retrievalIndex(workspace).find(*target, options);
    json data = retrievalJson(found);
    data["target"] = targetJson(*target);
    return {retrievalText(found), std::move(data), false};
}

json retrieveSchema()
{
    const json feature = objectSchema(
        {{"locus", textSchema("Where in the code")}, {"name", textSchema("What")}}, {"locus", "name"});
    return objectSchema(
        {{"workload", textSchema("Name of the workload; may be one that the workspace does not have")},
         {"platform", textSchema("As in sm90 or pocl")},
         {"language",
          {{"type", "string"},
           {"enum", kernel::surfaceNames()},
           {"description", "Left out: that of the platform"}}},
         {"state",
          textSchema(
              "A recorded state to start from, as in sgemm/pocl/K02; it says workload, platform, prior "
              "actions and features, to which the others are added")},
         {"code",
          textSchema(
              "A candidate file or any kernel: its code shows what it has already, in place of the state's")},
         {"prior_actions",
          {{"type", "array"},
           {"items", textSchema("An action category, as in tiling")},
           {"maxItems", 64},
           {"description", "Categories of actions that were applied already"}}},
         {"features",
          {{"type", "array"},
           {"items", feature},
           {"maxItems", 256},
           {"description", "What the code provides already, at which locus"}}},
         {"hypotheses",
          {{"type", "boolean"}, {"description", "Also cards that no held-out roundtrip has admitted"}}},
         {"chain",
          {{"type", "boolean"},
           {"description",
            "Also what the target is ready for once those cards are applied, until nothing is added; a line a card"}}},
         {"per_dimension",
          {{"type", "integer"},
           {"minimum", 1},
           {"maximum", 100},
           {"description", "Cards that each dimension takes; 8 when left out"}}}});
}

} // namespace

json outputOf(json properties)
{
    json required = json::array();
    for (const auto &[name, schema] : properties.items())
        required.push_back(name);
    return {{"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
}

ToolResult toolErrorOf(const Error &error)
{
    return mcp::toolError(error.detail.empty() ? error.message : error.message + '\n' + error.detail);
}

std::vector<Tool> lookupTools(const std::filesystem::path &root)
{
    using Lookup = ToolResult (*)(const Workspace &, const json &);
    const auto tool = [&root](std::string name, std::string title, std::string description, json schema,
                              json output, Lookup lookup) {
        return Tool{std::move(name),
                    std::move(title),
                    std::move(description),
                    std::move(schema),
                    true,
                    false,
                    [root, lookup](const json &arguments, const Call &) {
                        const Result<Workspace> workspace = openWorkspace(root);
                        return workspace ? lookup(*workspace, arguments) : toolErrorOf(workspace.error());
                    },
                    std::move(output)};
    };
    const json text{{"type", "string"}};
    const json texts{{"type", "array"}, {"items", text}};
    const json whole{{"type", "integer"}};
    return {
        tool("list_workloads", "List workloads",
             "The operators that can be optimized here, each with the lineages recorded for it.",
             objectSchema(json::object()),
             outputOf({{"workloads",
                        listOf({{"name", text}, {"title", text}, {"oracle", text}, {"lineages", texts}})}}),
             listWorkloads),
        tool(
            "get_workload", "Get a workload",
            "One operator: tensors, axes, cases, input distributions, oracle, tolerances and references. The first case is "
            "timed, all are checked.",
            objectSchema({{"workload", textSchema("Name of the workload")}}, {"workload"}),
            outputOf({{"name", text},
                      {"title", text},
                      {"description", text},
                      {"axes", texts},
                      {"timed_axes", {{"type", "object"}}},
                      {"tensors", listOf({{"name", text}, {"role", text}, {"dtype", text}, {"rank", whole}})},
                      {"lineages", texts},
                      {"workload_toml", text}}),
            getWorkload),
        tool(
            "get_lineage", "Get a lineage, or one of its states",
            "An expert kernel as validated steps from naive (K00) to expert: states, transitions with category, locus and "
            "card, and rejected attempts with the reason. With a state or attempt: its source text and trial.",
            objectSchema({{"lineage", textSchema("As in sgemm/pocl")},
                          {"state", textSchema("Id of a state or attempt, as in K03 or R03a")}},
                         {"lineage"}),
            // The lineage, or one of its states with its source and trial.
            json{{"type", "object"},
                 {"properties",
                  {{"lineage", text},
                   {"states", listOf({{"id", text}, {"title", text}})},
                   {"transitions", {{"type", "array"}}},
                   {"attempts", listOf({{"id", text}, {"parent", text}, {"title", text}})},
                   {"id", text},
                   {"source", text},
                   {"trial", {{"type", {"object", "null"}}}}}},
                 {"required", {"lineage", "title"}}},
            getLineage),
        tool(
            "list_cards", "List SkillCards",
            "The index of the library, a line a card: name, whether admitted, best measured effect, what not every "
            "device has, the beginning of its intent. get_card has the full text.",
            objectSchema(json::object()), outputOf({{"index", text}}), listCards),
        tool(
            "get_card", "Get a SkillCard",
            "One optimization: intent, anchor, preconditions, effects, risks, scope, feature contracts, carrier (a code "
            "sketch to adapt), evidence, verifications and reviews.",
            objectSchema({{"card", textSchema("Name of the card")}}, {"card"}), outputOf({{"name", text}}),
            getCard),
        tool(
            "retrieve_cards", "Retrieve SkillCards for a target",
            "Cards that fit a target by verified scope, feature contracts and recorded lineages, best first, each with the "
            "reasons; and near misses with what blocked them. Name workload and platform, or a state.",
            retrieveSchema(),
            outputOf({{"taken", listOf({{"card", text}, {"reasons", {{"type", "array"}}}})},
                      {"blocked", listOf({{"card", text}, {"rules", texts}})},
                      {"target", {{"type", "object"}}}}),
            retrieveCards),
    };
}

} // namespace klineage::cli
