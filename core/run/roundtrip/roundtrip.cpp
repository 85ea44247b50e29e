// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/roundtrip/roundtrip.h"

#include "core/files/atomicfile.h"
#include "core/files/jsonlines.h"
#include "core/files/sha256.h"
#include "core/kernel/candidatetext.h"
#include "core/run/materialize/arm.h"
#include "core/run/rederive/handstep.h"
#include "core/talk/cardtext.h"
#include "core/talk/figures.h"
#include "core/talk/prompt.h"
#include "core/talk/reply.h"
#include "core/talk/trialtext.h"

#include <algorithm>
#include <set>
#include <system_error>

namespace klineage::run {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t mostCardBytes = 60'000; ///< of a prompt; the rest of it takes some ten thousand
constexpr std::size_t mostFileBytes = std::size_t{8} << 20;

/// One trial of an arm, with the try that it has come to: the last whose prompt is there.
struct Step {
    std::string arm;
    int trial = 1;
    HandTry current{};
    std::string prompt{}; ///< its file's text; empty when there is none yet
    std::string reply{};
};

class Roundtrips
{
public:
    explicit Roundtrips(const RoundtripWork &work)
        : m_work(work)
    {}

    template <typename Each>
    Result<std::vector<RoundtripRow>> forEach(Each &&each)
    {
        if (Status begun = begin(); !begun)
            return tl::unexpected(begun.error());
        std::vector<RoundtripRow> rows;
        for (const std::string &arm : m_work.arms) {
            for (int trial = 1; trial <= m_work.trials; ++trial) {
                const Result<Step> step = find(arm, trial);
                if (!step)
                    return tl::unexpected(step.error());
                Result<RoundtripRow> row = each(*step);
                if (!row)
                    return tl::unexpected(row.error());
                rows.push_back(std::move(*row));
            }
        }
        return rows;
    }

    Result<RoundtripRow> ask(const Step &step);
    Result<RoundtripRow> prepare(const Step &step, std::vector<lineage::RecordJob> &jobs);
    Result<RoundtripRow> judge(const Step &step, const std::vector<gate::Trial> &given);

private:
    Status begin();
    [[nodiscard]] HandTry tryOf(const std::string &arm, int trial, int number) const
    {
        return handTry(m_work.folder, m_work.lineage, arm + "-t" + std::to_string(trial), number);
    }
    [[nodiscard]] Result<Step> find(const std::string &arm, int trial) const;
    [[nodiscard]] RoundtripRow rowOf(const Step &step, const std::string &outcome) const
    {
        return {m_work.lineage.key(), step.arm, step.trial, step.current.number, outcome};
    }
    [[nodiscard]] std::optional<RoundtripRow> settledRow(const Step &step) const;
    [[nodiscard]] std::vector<const skills::CardRecord *> ownCards() const;
    [[nodiscard]] std::string cardsText(const std::string &arm) const;
    [[nodiscard]] Result<std::string> promptOf(const std::string &arm) const;
    [[nodiscard]] Status keep(const Step &step, RoundtripLine line, const std::string &text,
                              const gate::Trial *trial);

    const RoundtripWork &m_work;
    const gate::Trial *m_rootTrial = nullptr;
    const gate::Trial *m_lastTrial = nullptr;
    std::string m_rootText;
    std::string m_lastText;
    std::string m_task;
    std::vector<RoundtripLine> m_log;
};

Status Roundtrips::begin()
{
    const lineage::Lineage &lineage = m_work.lineage;
    if (lineage.states.size() < 2)
        return fail(ErrorCode::InvalidInput,
                    "The lineage " + lineage.key() + " has no last state to come to.");
    m_rootTrial = lineage.trialOf(lineage.states.front());
    m_lastTrial = lineage.trialOf(lineage.states.back());
    if (!m_rootTrial || !m_lastTrial || m_lastTrial->latencyNs.value <= 0)
        return fail(ErrorCode::InvalidInput,
                    "The first and the last state of " + lineage.key() + " were not both timed.");
    for (const std::string &arm : m_work.arms) {
        if (const Result<Arm> known = armOf({{"arm", arm}}); !known)
            return tl::unexpected(known.error());
    }
    std::error_code problem;
    fs::create_directories(m_work.folder, problem);
    if (problem)
        return fail(ErrorCode::Io,
                    "Cannot create '" + m_work.folder.string() + "': " + problem.message() + '.');
    const auto read = [&](const lineage::State &state, std::string &to) -> Status {
        Result<std::string> text = kernel::readCandidateText(lineage.directory / state.file);
        if (!text)
            return tl::unexpected(text.error());
        to = std::move(*text);
        return {};
    };
    if (Status got = read(lineage.states.front(), m_rootText); !got)
        return got;
    if (Status got = read(lineage.states.back(), m_lastText); !got)
        return got;
    Result<std::string> task = readTask(lineage);
    if (!task)
        return tl::unexpected(task.error());
    m_task = std::move(*task);
    Result<std::vector<RoundtripLine>> log = readRoundtrips(lineage.directory);
    if (!log)
        return tl::unexpected(log.error());
    m_log = std::move(*log);
    return {};
}

Result<Step> Roundtrips::find(const std::string &arm, int trial) const
{
    Step step{arm, trial};
    for (int number = 0; number < roundtripTries; ++number) {
        HandTry next = tryOf(arm, trial, number);
        std::error_code ignored;
        if (number == 0 || fs::is_regular_file(next.prompt, ignored))
            step.current = std::move(next);
    }
    const auto read = [](const fs::path &path, std::string &to) -> Status {
        Result<std::string> text = files::readFile(path, mostFileBytes);
        if (!text && text.error().code != ErrorCode::NotFound)
            return tl::unexpected(text.error());
        if (text && text->find_first_not_of(" \t\r\n") != std::string::npos)
            to = std::move(*text);
        return {};
    };
    if (Status got = read(step.current.prompt, step.prompt); !got)
        return tl::unexpected(got.error());
    if (Status got = read(step.current.reply, step.reply); !got)
        return tl::unexpected(got.error());
    return step;
}

std::optional<RoundtripRow> Roundtrips::settledRow(const Step &step) const
{
    if (step.reply.empty()) {
        RoundtripRow row = rowOf(step, "waiting");
        row.file = step.current.prompt;
        return row;
    }
    const std::string sha = files::sha256Hex(step.reply);
    for (const RoundtripLine &line : m_log) {
        if (line.arm != step.arm || line.trial != step.trial || line.number != step.current.number
            || line.reply != sha)
            continue;
        RoundtripRow row = rowOf(step, line.outcome);
        row.reason = line.reason;
        row.share = line.share;
        return row;
    }
    return std::nullopt;
}

/// Those that the lineage's steps were lifted into, in their order.
std::vector<const skills::CardRecord *> Roundtrips::ownCards() const
{
    std::vector<const skills::CardRecord *> cards;
    for (const lineage::Transition &transition : m_work.lineage.transitions) {
        const skills::CardRecord *card = m_work.workspace.findCard(transition.card);
        if (card && std::find(cards.begin(), cards.end(), card) == cards.end())
            cards.push_back(card);
    }
    return cards;
}

/// The same cards in the arms that show any. Where they have no room the earliest ones are named alone: what comes last is hardest to find.
std::string Roundtrips::cardsText(const std::string &arm) const
{
    if (arm == "none")
        return {};
    const Arm shown = armOf({{"arm", arm}}).value_or(Arm::Full);
    std::vector<std::string> texts;
    std::size_t bytes = 0;
    const auto cards = ownCards();
    for (auto card = cards.rbegin(); card != cards.rend(); ++card) {
        bytes += policy::briefCardText(**card).size();
        texts.push_back(bytes > mostCardBytes ? policy::indexLine(**card)
                                              : '\n' + policy::briefCardText(shownIn(shown, **card)));
    }
    std::string text;
    for (auto each = texts.rbegin(); each != texts.rend(); ++each)
        text += *each;
    return text;
}

Result<std::string> Roundtrips::promptOf(const std::string &arm) const
{
    const lineage::Lineage &lineage = m_work.lineage;
    const Result<std::string> format =
        prompt("materialize-format", {{"surface", kernel::toString(lineage.surface)}});
    if (!format)
        return format;
    Conversation conversation;
    Result<std::string> system =
        prompt("materialize-system", {{"workload_file", fenced(m_task, "toml")},
                                      {"platform", lineage.platform},
                                      {"device", m_rootTrial->environment.device},
                                      {"candidate_format", *format},
                                      {"root_name", lineage.key() + '/' + lineage.states.front().id},
                                      {"root_file", fenced(m_rootText, "")},
                                      {"root_verdict", policy::trialText(*m_rootTrial)},
                                      {"seed", ""}});
    if (!system)
        return system;
    conversation.system = std::move(*system);
    const std::string cards = cardsText(arm);
    if (!cards.empty()) {
        const Result<std::string> told = prompt("materialize-cards", {{"cards", cards}});
        if (!told)
            return told;
        conversation.system += '\n' + *told;
    }
    const double expert = m_lastTrial->latencyNs.value;
    Result<std::string> request = prompt(
        "roundtrip-request",
        {{"expert", policy::latencyText(expert)},
         {"root", policy::latencyText(m_rootTrial->latencyNs.value)},
         {"goal", policy::latencyText(expert / recoveredShare)},
         {"cards",
          cards.empty() ? "" : "The cards are the steps that led to the expert's kernel, in their order. "}});
    if (!request)
        return request;
    conversation.user(std::move(*request));
    return handPrompt(conversation);
}

Result<RoundtripRow> Roundtrips::ask(const Step &step)
{
    RoundtripRow row = rowOf(step, step.reply.empty() ? "waiting" : "answered");
    row.file = step.current.prompt;
    if (auto settled = settledRow(step); settled && !step.reply.empty())
        return std::move(*settled);
    if (step.current.number > 0 || !step.reply.empty())
        return row;
    const Result<std::string> text = promptOf(step.arm);
    if (!text)
        return tl::unexpected(text.error());
    if (*text != step.prompt) {
        if (Status written = files::writeFileAtomic(step.current.prompt, *text); !written)
            return tl::unexpected(written.error());
        row.outcome = "asked";
    }
    return row;
}

Result<RoundtripRow> Roundtrips::prepare(const Step &step, std::vector<lineage::RecordJob> &jobs)
{
    if (auto row = settledRow(step))
        return std::move(*row);
    const Result<std::string> text = candidateIn(step.reply, m_work.lineage.surface);
    if (!text) {
        RoundtripRow row = rowOf(step, "failed");
        row.reason = text.error().message;
        return row;
    }
    if (Status written = files::writeFileAtomic(step.current.candidate, *text); !written)
        return tl::unexpected(written.error());
    lineage::RecordJob job;
    job.id = "roundtrip/" + m_work.lineage.key() + '/' + step.arm + "-t" + std::to_string(step.trial) + '/'
             + files::sha256Hex(*text).substr(0, 12);
    job.workload = m_work.lineage.directory.parent_path().parent_path();
    job.candidate = step.current.candidate;
    job.parent = m_work.lineage.directory / m_work.lineage.states.back().file;
    jobs.push_back(std::move(job));
    return rowOf(step, "ready");
}

Status Roundtrips::keep(const Step &step, RoundtripLine line, const std::string &text,
                        const gate::Trial *trial)
{
    const fs::path folder = roundtripFolder(m_work.lineage.directory);
    std::error_code ignored;
    fs::create_directories(folder, ignored);
    if (!text.empty()) {
        std::string stem = step.arm + "-t" + std::to_string(step.trial);
        if (step.current.number > 0)
            stem += ".again" + std::to_string(step.current.number);
        line.file = candidateName(stem, m_work.lineage.surface);
        if (Status written = files::writeFileAtomic(folder / line.file, text); !written)
            return written;
    }
    if (trial) {
        line.trialId = trial->id;
        gate::Trial kept = *trial;
        kept.file = line.file;
        if (Status appended = files::appendLine(folder / "trials.jsonl", gate::writeTrial(kept)); !appended)
            return appended;
    }
    m_log.push_back(line);
    return appendRoundtrip(m_work.lineage.directory, line);
}

Result<RoundtripRow> Roundtrips::judge(const Step &step, const std::vector<gate::Trial> &given)
{
    if (auto row = settledRow(step))
        return std::move(*row);
    RoundtripLine line;
    line.arm = step.arm;
    line.trial = step.trial;
    line.number = step.current.number;
    for (const skills::CardRecord *card : ownCards()) {
        if (step.arm != "none")
            line.cards.push_back(card->card.name);
    }
    line.prompt = files::sha256Hex(step.prompt);
    line.reply = files::sha256Hex(step.reply);
    std::string feedback;
    const gate::Trial *trial = nullptr;
    const Result<std::string> text = candidateIn(step.reply, m_work.lineage.surface);
    if (!text) {
        line.outcome = "failed";
        line.reason = feedback = text.error().message;
    } else {
        const std::string candidate = files::sha256Hex(*text);
        const std::string parent = files::sha256Hex(m_lastText);
        for (const gate::Trial &made : given) {
            if (made.candidate == candidate && made.parent == parent
                && made.verdict.status != gate::VerdictStatus::Unavailable)
                trial = &made;
        }
        if (!trial) {
            RoundtripRow row = rowOf(step, "ungated");
            row.reason = "There is no trial of it against " + m_work.lineage.states.back().id + '.';
            return row;
        }
        feedback = policy::trialText(*trial);
        const gate::Comparison *comparison = trial->comparison("parent");
        if (trial->verdict.status != gate::VerdictStatus::Correct || !comparison) {
            line.outcome = gate::toString(trial->verdict.status);
            line.reason = sentence(verdictLine(*trial));
        } else {
            line.share = comparison->speedup.value;
            line.outcome = *line.share >= recoveredShare ? "recovered" : "short";
            line.reason = sentence(figuresText(*trial));
        }
    }
    if (Status kept = keep(step, line, text.value_or(""), trial); !kept)
        return tl::unexpected(kept.error());
    RoundtripRow row = rowOf(step, line.outcome);
    row.reason = line.reason;
    row.share = line.share;
    const int next = step.current.number + 1;
    if (line.outcome == "recovered" || next >= roundtripTries)
        return row;
    const Result<std::string> again = prompt(
        "roundtrip-again", {{"verdict", feedback},
                            {"goal", policy::latencyText(m_lastTrial->latencyNs.value / recoveredShare)}});
    if (!again)
        return tl::unexpected(again.error());
    const HandTry further = tryOf(step.arm, step.trial, next);
    if (Status written = files::writeFileAtomic(further.prompt, handRepair(step.prompt, step.reply, *again));
        !written)
        return tl::unexpected(written.error());
    row.file = further.prompt;
    return row;
}

} // namespace

Result<std::vector<RoundtripRow>> askRoundtrips(const RoundtripWork &work)
{
    Roundtrips roundtrips(work);
    return roundtrips.forEach([&](const Step &step) { return roundtrips.ask(step); });
}

Result<RoundtripJobs> roundtripJobs(const RoundtripWork &work)
{
    Roundtrips roundtrips(work);
    RoundtripJobs found;
    Result<std::vector<RoundtripRow>> rows =
        roundtrips.forEach([&](const Step &step) { return roundtrips.prepare(step, found.jobs); });
    if (!rows)
        return tl::unexpected(rows.error());
    found.rows = std::move(*rows);
    return found;
}

Result<std::vector<RoundtripRow>> judgeRoundtrips(const RoundtripWork &work,
                                                  const std::vector<gate::Trial> &trials)
{
    Roundtrips roundtrips(work);
    return roundtrips.forEach([&](const Step &step) { return roundtrips.judge(step, trials); });
}

} // namespace klineage::run
