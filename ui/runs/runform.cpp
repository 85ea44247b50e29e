// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/runform.h"

#include "core/policy/cardtext.h"
#include "core/policy/policy.h"
#include "core/run/runid.h"

#include <algorithm>

namespace klineage::ui {

namespace fs = std::filesystem;

namespace {

struct Root {
    const lineage::Lineage *lineage = nullptr;
    const lineage::State *state = nullptr;
};

Root findRoot(const Workspace &workspace, const std::string &name)
{
    const std::size_t cut = name.rfind('/');
    const lineage::Lineage *lineage =
        cut == std::string::npos ? nullptr : workspace.findLineage(name.substr(0, cut));
    return {lineage, lineage ? lineage->findState(name.substr(cut + 1)) : nullptr};
}

Status checkAuthor(const RunForm &form)
{
    if (llm::needsModel(form.provider) && form.model.empty())
        return fail(ErrorCode::InvalidInput, "Name the model that " + form.provider + " is asked for.");
    if (form.provider == "exec" && form.command.empty())
        return fail(ErrorCode::InvalidInput, "Name the command that answers.");
    if (form.provider == "replay" && form.transcript.empty())
        return fail(ErrorCode::InvalidInput, "Name the transcript that answers.");
    return {};
}

} // namespace

Result<run::Settings> runSettings(const Workspace &workspace, const RunForm &form)
{
    const Root root = findRoot(workspace, form.root);
    if (!root.state)
        return fail(ErrorCode::NotFound, "Choose the state that the run begins with.");
    if (Status sound = checkAuthor(form); !sound)
        return tl::unexpected(sound.error());
    run::Settings settings;
    settings.kind = run::Kind::Materialize;
    settings.workload = root.lineage->workload;
    settings.platform = root.lineage->platform;
    settings.surface = kernel::toString(root.lineage->surface);
    settings.subject = form.root;
    settings.policy = form.policy;
    settings.provider = form.provider;
    if (llm::needsModel(form.provider))
        settings.model = form.model;
    settings.capDollars = form.capDollars;
    settings.maxSteps = form.maxQuestions;
    settings.seed = static_cast<std::uint64_t>(std::max(0, form.seed));
    if (form.heldOut)
        settings.options["held_out"] = "yes";
    if (form.provider == "exec")
        settings.author["command"] = form.command;
    if (form.provider == "replay")
        settings.author["transcript"] = fs::path(form.transcript).string();
    if (llm::needsModel(form.provider) && !form.baseUrl.empty())
        settings.author["base_url"] = form.baseUrl;
    settings.id = run::freshRunId(workspace.root / "runs", settings);
    return settings;
}

Result<std::optional<run::Estimate>> runEstimate(const Workspace &workspace, const run::Settings &settings)
{
    const bool isPaid = settings.provider == "anthropic" || settings.provider == "openai";
    if (!isPaid)
        return std::optional<run::Estimate>();
    const Result<llm::PriceTable> prices = llm::loadPrices(workspace.root);
    if (!prices)
        return tl::unexpected(prices.error());
    std::error_code ignored;
    std::size_t rootBytes = 0;
    if (const workload::Workload *workload = workspace.findWorkload(settings.workload))
        rootBytes += fs::file_size(workload->directory / "workload.toml", ignored);
    if (const Root root = findRoot(workspace, settings.subject); root.state)
        rootBytes += fs::file_size(root.lineage->directory / root.state->file, ignored);
    // At most what the library has of admitted cards of the language: which of them fit is only known when the run begins.
    std::size_t cardBytes = 0;
    if (policy::usesCards(settings.policy, settings.options)) {
        for (const skills::CardRecord &record : workspace.cards) {
            const std::vector<std::string> &languages = record.card.scope.languages;
            if (record.life() == skills::Life::Admitted
                && std::find(languages.begin(), languages.end(), settings.surface) != languages.end())
                cardBytes += policy::cardText(record).size();
        }
    }
    return run::estimateCost(settings, isPaid, *prices, rootBytes, cardBytes);
}

} // namespace klineage::ui
