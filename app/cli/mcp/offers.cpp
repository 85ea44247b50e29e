// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/mcp/offers.h"

#include "core/base/suggest.h"
#include "core/workspace/workspace.h"

#include <algorithm>
#include <array>

namespace klineage::cli {

namespace {

constexpr const char *candidateFormat =
#include "candidateformat.inc"
    ;
constexpr const char *workloadFormat =
#include "workloadformat.inc"
    ;
constexpr const char *loopText =
#include "agentloop.inc"
    ;

constexpr const char *markdown = "text/markdown";
constexpr std::string_view workloadScheme = "klineage://workload/";
constexpr std::string_view cardScheme = "klineage://card/";

struct Document {
    const char *uri;
    const char *name;
    const char *title;
    const char *description;
    const char *text;
};

const std::array<Document, 3> documents = {{
    {"klineage://format/candidate", "candidate-format", "The candidate file",
     "What a candidate is: the launch plan in TOML, then device code; expressions, tunables, workspaces, tensor maps, limits",
     candidateFormat},
    {"klineage://format/workload", "workload-format", "The workload file",
     "workload.toml: tensors, contents, cases, oracles (in Python too), tolerances, references",
     workloadFormat},
    {"klineage://loop", "loop", "How to work with the gate",
     "The loop of looking, retrieving cards, writing a candidate and gating it", loopText},
}};

std::vector<mcp::Resource> resourcesOf(const std::filesystem::path &root)
{
    std::vector<mcp::Resource> all;
    for (const Document &document : documents)
        all.push_back({document.uri, document.name, document.title, document.description, markdown});
    const Result<Workspace> workspace = openWorkspace(root);
    if (!workspace)
        return all;
    for (const workload::Workload &workload : workspace->workloads)
        all.push_back({std::string(workloadScheme) + workload.name, workload.name, workload.title,
                       "The workload " + workload.name + ", workload.toml", "application/toml"});
    for (const skills::CardRecord &record : workspace->cards)
        all.push_back({std::string(cardScheme) + record.card.name, record.card.name, record.card.name,
                       record.card.intent.text.substr(0, 200), markdown});
    return all;
}

std::optional<mcp::ResourceText> textOf(const std::filesystem::path &root, const std::string &uri)
{
    const auto document =
        std::find_if(documents.begin(), documents.end(), [&](const Document &d) { return uri == d.uri; });
    if (document != documents.end())
        return mcp::ResourceText{markdown, document->text};
    const Result<Workspace> workspace = openWorkspace(root);
    if (!workspace)
        return std::nullopt;
    if (uri.starts_with(workloadScheme)) {
        if (const auto *workload = workspace->findWorkload(uri.substr(workloadScheme.size())))
            return mcp::ResourceText{"application/toml", workload::writeWorkload(*workload)};
    }
    if (uri.starts_with(cardScheme)) {
        if (const auto *record = workspace->findCard(uri.substr(cardScheme.size())))
            return mcp::ResourceText{markdown, skills::writeSkillMarkdown(*record)};
    }
    return std::nullopt;
}

using Arguments = std::map<std::string, std::string>;

std::string optimizePrompt(const Workspace &workspace, const workload::Workload &workload,
                           const Arguments &arguments)
{
    std::string lineages;
    for (const lineage::Lineage &lineage : workspace.lineages) {
        if (lineage.workload == workload.name)
            lineages += "- " + lineage.key() + ", " + std::to_string(lineage.states.size()) + " states\n";
    }
    const auto platform = arguments.find("platform");
    return "Make a kernel for the workload " + workload.name + " faster"
           + (platform == arguments.end() ? std::string() : " on the platform " + platform->second)
           + ". Work in the loop that stands below; the format of a candidate is the resource klineage://format/candidate.\n\n"
           + (lineages.empty() ? std::string("No lineage of it is recorded.\n")
                               : "Recorded lineages (get_lineage):\n" + lineages)
           + "\nworkload.toml:\n\n```toml\n" + workload::writeWorkload(workload) + "```\n\n" + loopText;
}

std::string writePrompt(const Workspace &, const workload::Workload &workload, const Arguments &)
{
    return "Write a first, simple and correct candidate for the workload " + workload.name
           + ", gate it with the tool gate, and repair it until its verdict is correct.\n\nworkload.toml:\n\n```toml\n"
           + workload::writeWorkload(workload) + "```\n\n" + candidateFormat;
}

/// What `write` makes of the workload that the arguments name; nothing, and a sentence, when there is none.
template <typename Write>
auto promptOfWorkload(const std::filesystem::path &root, Write write)
{
    return [root, write](const Arguments &arguments, std::string &problem) -> std::string {
        const Result<Workspace> workspace = openWorkspace(root);
        if (!workspace) {
            problem = workspace.error().message;
            return {};
        }
        const std::string &name = arguments.at("workload");
        const workload::Workload *workload = workspace->findWorkload(name);
        if (!workload) {
            problem = noSuchName("workload", name, workspace->workloadNames());
            return {};
        }
        return write(*workspace, *workload, arguments);
    };
}

} // namespace

mcp::Offers workspaceOffers(const std::filesystem::path &root)
{
    mcp::Offers offers;
    offers.resources = [root] { return resourcesOf(root); };
    offers.templates = {
        {std::string(workloadScheme) + "{name}", "workload", "A workload", "workload.toml of that workload",
         "application/toml"},
        {std::string(cardScheme) + "{name}", "card", "A SkillCard",
         "The card as a skill: when it is sound, the code", markdown},
    };
    offers.read = [root](const std::string &uri) { return textOf(root, uri); };
    const mcp::PromptArgument workload{"workload", "Name of the workload", true};
    offers.prompts = {
        {"optimize",
         "Make a kernel faster",
         "The loop of cards, candidates and verdicts on a workload",
         {workload, {"platform", "Where, as in sm90 or pocl", false}},
         promptOfWorkload(root, optimizePrompt)},
        {"write_candidate",
         "Write a first candidate",
         "A simple correct kernel for a workload, in the gate's format",
         {workload},
         promptOfWorkload(root, writePrompt)},
    };
    return offers;
}

} // namespace klineage::cli
