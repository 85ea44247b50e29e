// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/drive/start.h"

#include "core/base/identifier.h"
#include "core/base/suggest.h"
#include "core/kernel/candidate.h"
#include "core/llm/makeprovider.h"
#include "core/llm/modelsettings.h"
#include "core/policy/newoptions.h"
#include "core/run/deoptimize/walk.h"
#include "core/run/lift/group.h"
#include "core/run/runid.h"
#include "core/run/subject.h"
#include "core/run/summary.h"

#include <algorithm>

namespace klineage::run {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view earlierRun = "run:";

tl::unexpected<Error> unknownName(const std::string &what, const std::string &name,
                                  const std::vector<std::string> &known)
{
    return fail(ErrorCode::NotFound, noSuchName(what, name, known));
}

std::string absolutePath(const std::string &path)
{
    std::error_code ignored;
    return path.empty() ? path : fs::absolute(path, ignored).string();
}

/// What lies in the workspace is named as seen from there, so that a run's record is as good on another machine.
std::string pathFrom(const fs::path &workspace, const std::string &path)
{
    std::error_code failed;
    const fs::path relative = fs::proximate(path, workspace, failed);
    return failed || relative.empty() || *relative.begin() == ".." ? absolutePath(path) : relative.string();
}

bool isFile(const std::string &path)
{
    std::error_code ignored;
    return !path.empty() && fs::is_regular_file(path, ignored);
}

/// Makes settings of a request, one part after the other.
class Starter
{
public:
    Starter(const Workspace &workspace, const StartRequest &request)
        : m_workspace(workspace)
        , m_request(request)
    {}

    Result<Settings> run()
    {
        copyPlainParts();
        Status status = takeSubject();
        if (status)
            status = checkWorkload();
        m_settings.id =
            m_request.id.empty() ? freshRunId(m_workspace.root / "runs", m_settings) : m_request.id;
        if (status && m_settings.kind == Kind::Deoptimize)
            status = checkNewLineage();
        if (status)
            status = checkAuthor();
        if (status)
            status = takeModelSettings();
        if (!status)
            return tl::unexpected(status.error());
        return std::move(m_settings);
    }

private:
    void copyPlainParts();
    [[nodiscard]] Status takeSubject();
    [[nodiscard]] Status takeCard();
    [[nodiscard]] Status takeLineages();
    [[nodiscard]] Status takeKernel(const std::string &name);
    [[nodiscard]] Status takeRun(const std::string &id);
    [[nodiscard]] Status takeFile();
    [[nodiscard]] Status checkState(const lineage::Lineage &lineage, const std::string &name) const;
    [[nodiscard]] Status checkWorkload() const;
    [[nodiscard]] Status checkNewLineage() const;
    [[nodiscard]] Status checkAuthor() const;
    [[nodiscard]] Status takeModelSettings();
    void takeScope(const lineage::Lineage &lineage);
    [[nodiscard]] const lineage::Lineage *lineageOf(const std::string &name) const;
    [[nodiscard]] std::string field(const char *name) const { return m_request.fieldPrefix + name; }

    const Workspace &m_workspace;
    const StartRequest &m_request;
    Settings m_settings;
};

void Starter::copyPlainParts()
{
    m_settings.kind = m_request.kind;
    m_settings.workload = m_request.workload;
    m_settings.platform = m_request.platform;
    m_settings.subject = m_request.subject;
    m_settings.provider = m_request.provider;
    m_settings.model = m_request.model;
    m_settings.capDollars = m_request.capDollars;
    m_settings.maxSteps = m_request.maxSteps;
    m_settings.seed = m_request.seed;
    m_settings.options = m_request.options;
    if (m_settings.kind == Kind::Deoptimize)
        m_settings.options.try_emplace("bounds", "both");
    if (m_settings.kind == Kind::Lift)
        m_settings.options.try_emplace("card_format", "2");
    if (m_settings.kind == Kind::Materialize)
        m_settings.policy = m_request.policy;
    if (m_settings.kind == Kind::Materialize)
        m_settings.options.merge(policy::newOptions(m_settings.policy));
    for (const auto &[name, value] : m_request.author) {
        if (!value.empty())
            m_settings.author[name] = name == "transcript" ? absolutePath(value) : value;
    }
}

Status Starter::takeSubject()
{
    if (m_settings.kind == Kind::Admit)
        return takeCard();
    if (m_settings.kind == Kind::Lift)
        return takeLineages();
    if (m_settings.subject.starts_with(earlierRun))
        return takeRun(m_settings.subject.substr(earlierRun.size()));
    if (m_settings.subject.empty())
        return fail(ErrorCode::InvalidInput, "Choose the kernel that the run begins with.");
    return takeKernel(m_settings.subject);
}

/// A state, a lineage or a candidate file.
Status Starter::takeKernel(const std::string &name)
{
    if (const lineage::Lineage *lineage = lineageOf(name)) {
        if (Status sound = checkState(*lineage, name); !sound)
            return sound;
        if (stateNameOf(name)->state.empty() && m_settings.kind == Kind::Materialize)
            m_settings.subject += '/' + lineage->states.front().id; // the naive state
        takeScope(*lineage);
        return {};
    }
    if (isFile(name))
        return takeFile();
    return unknownName("lineage, file or run", name, m_workspace.lineageKeys());
}

Status Starter::takeCard()
{
    if (!m_workspace.findCard(m_settings.subject))
        return unknownName("card", m_settings.subject, m_workspace.cardNames());
    std::string &target = m_settings.options["target"];
    if (target.empty())
        return fail(ErrorCode::InvalidInput, "Choose the kernel that the card is tried on, the "
                                                 + field("target")
                                                 + ": a state of a lineage or a candidate file.");
    if (const lineage::Lineage *lineage = lineageOf(target)) {
        if (Status sound = checkState(*lineage, target); !sound)
            return sound;
        takeScope(*lineage);
    } else if (isFile(target)) {
        const Result<kernel::Candidate> candidate = kernel::readCandidate(target);
        if (!candidate)
            return tl::unexpected(candidate.error());
        m_settings.surface = kernel::toString(candidate->surface);
        target = pathFrom(m_workspace.root, target);
    }
    if (m_settings.workload.empty() || m_settings.platform.empty() || m_settings.surface.empty())
        return fail(ErrorCode::InvalidInput, "'" + target + "' is no state of a lineage; for a file, say "
                                                 + field("workload") + " and " + field("platform") + " too.");
    return {};
}

Status Starter::takeLineages()
{
    const std::vector<std::string> keys = liftedLineages(m_settings.subject);
    for (const std::string &key : keys) {
        if (!m_workspace.findLineage(key))
            return unknownName("lineage", key, m_workspace.lineageKeys());
    }
    if (keys.size() == 1)
        takeScope(*m_workspace.findLineage(keys.front()));
    return {};
}

/// The best candidate of an earlier run, as a file of the workspace.
Status Starter::takeRun(const std::string &id)
{
    const Result<RunRecord> record = readRun(m_workspace.root / "runs" / id);
    if (!record)
        return tl::unexpected(record.error());
    const Summary summary = summarize(*record);
    if (summary.candidate.empty())
        return fail(ErrorCode::InvalidInput, "The run '" + id + "' has no correct candidate to begin with.");
    m_settings.workload = record->settings.workload;
    m_settings.platform = record->settings.platform;
    m_settings.surface = record->settings.surface;
    const kernel::Surface surface = kernel::surfaceFromString(m_settings.surface).value_or(kernel::Surface());
    m_settings.subject = "runs/" + id + '/' + candidateFileName(summary.candidate, surface);
    return {};
}

/// A candidate file: its surface is written in it; the platform is that of the workload's only lineage on it, unless it was said.
Status Starter::takeFile()
{
    const Result<kernel::Candidate> candidate = kernel::readCandidate(m_settings.subject);
    if (!candidate)
        return tl::unexpected(candidate.error());
    if (m_settings.workload.empty())
        return fail(ErrorCode::InvalidInput, "'" + m_settings.subject + "' is a file: say its workload with "
                                                 + field("workload") + '.');
    m_settings.subject = pathFrom(m_workspace.root, m_settings.subject);
    m_settings.surface = kernel::toString(candidate->surface);
    if (!m_settings.platform.empty())
        return {};
    std::vector<std::string> platforms;
    for (const lineage::Lineage &lineage : m_workspace.lineages) {
        const bool isKnown =
            std::find(platforms.begin(), platforms.end(), lineage.platform) != platforms.end();
        if (lineage.workload == m_settings.workload && lineage.surface == candidate->surface && !isKnown)
            platforms.push_back(lineage.platform);
    }
    if (platforms.size() != 1)
        return fail(ErrorCode::InvalidInput,
                    "Say the platform with " + field("platform") + ", as in pocl or sm90.");
    m_settings.platform = platforms.front();
    return {};
}

const lineage::Lineage *Starter::lineageOf(const std::string &name) const
{
    const std::optional<StateName> state = stateNameOf(name);
    return state ? m_workspace.findLineage(state->lineage()) : nullptr;
}

Status Starter::checkState(const lineage::Lineage &lineage, const std::string &name) const
{
    if (lineage.states.empty())
        return fail(ErrorCode::InvalidInput, "The lineage " + lineage.key() + " has no states.");
    const std::string state = stateNameOf(name)->state;
    if (state.empty() || lineage.findState(state))
        return {};
    std::vector<std::string> known;
    for (const lineage::State &other : lineage.states)
        known.push_back(other.id);
    return unknownName("state of " + lineage.key(), state, known);
}

void Starter::takeScope(const lineage::Lineage &lineage)
{
    if (m_settings.workload.empty())
        m_settings.workload = lineage.workload;
    if (m_settings.platform.empty())
        m_settings.platform = lineage.platform;
    m_settings.surface = kernel::toString(lineage.surface);
}

Status Starter::checkWorkload() const
{
    if (m_settings.workload.empty() || m_workspace.findWorkload(m_settings.workload))
        return {};
    return unknownName("workload", m_settings.workload, m_workspace.workloadNames());
}

/// What the run itself would find out after its first trial: where its lineage goes must be free.
Status Starter::checkNewLineage() const
{
    const auto named = m_settings.options.find("name");
    const std::string name = named == m_settings.options.end() ? std::string() : named->second;
    if (!name.empty() && !isSlug(name))
        return fail(ErrorCode::InvalidInput,
                    "'" + name
                        + "' is no name for a lineage; expected 1 to 64 of a-z, 0-9, "
                          "'_' and '-', not '-' first.");
    const std::string folder = name.empty() ? m_settings.platform : m_settings.platform + '-' + name;
    return checkWalkFolder(m_workspace.root / "workloads" / m_settings.workload / "lineages" / folder,
                           m_settings.id);
}

Status Starter::checkAuthor() const
{
    const auto isMissing = [this](const char *key) { return m_settings.author.count(key) == 0; };
    const std::string &provider = m_settings.provider;
    const char *missing = nullptr;
    if (m_settings.model.empty() && llm::needsModel(provider))
        missing = "model";
    else if (provider == "exec" && isMissing("command"))
        missing = "command";
    else if (provider == "replay" && isMissing("transcript"))
        missing = "transcript";
    if (missing)
        return fail(ErrorCode::InvalidInput,
                    "The provider '" + provider + "' needs a " + field(missing) + '.');
    return {};
}

/// Written into the run, so that it goes on as it began whatever models.toml says later.
Status Starter::takeModelSettings()
{
    if (llm::needsModel(m_settings.provider)) {
        const Result<llm::OwnModels> own = llm::loadModels();
        if (!own)
            return tl::unexpected(own.error());
        llm::addModelSettings(*own, m_settings.model, m_settings.author);
    }
    llm::Request probe;
    return llm::applyAuthorKeys(m_settings.author, probe);
}

} // namespace

Result<Settings> startSettings(const Workspace &workspace, const StartRequest &request)
{
    return Starter(workspace, request).run();
}

FoundState findState(const Workspace &workspace, const std::string &name)
{
    const std::optional<StateName> parts = stateNameOf(name);
    const lineage::Lineage *lineage = parts ? workspace.findLineage(parts->lineage()) : nullptr;
    if (!lineage || lineage->states.empty())
        return {};
    const lineage::State *state =
        parts->state.empty() ? &lineage->states.back() : lineage->findState(parts->state);
    return state ? FoundState{lineage, state} : FoundState();
}

} // namespace klineage::run
