// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/archives/importarchive.h"

#include "core/base/numbertext.h"
#include "core/base/suggest.h"
#include "core/interop/archives/ancestry.h"
#include "core/interop/archives/archivetext.h"
#include "core/interop/archives/formats/readers.h"
#include "core/interop/archives/programfile.h"
#include "core/lineage/newlineage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace klineage::interop {

namespace {

/// What lineage.toml may have of its 1 MiB, once a trial is named in each row: the rest is for what people write into it.
constexpr std::size_t maxLineageBytes = 1'000'000;
constexpr std::size_t bytesOfATrial = 30;

constexpr const char *notStated = "not stated there";

std::string shownId(const std::string &id)
{
    return firstLine(id, 40);
}

/// "combined_score 1.25", or that there is none.
std::string scoreText(const ArchivedProgram &program)
{
    return program.score ? program.scoreName + ' ' + significantText(*program.score, 6) : "no score";
}

/// "generation 3, island 1, OpenEvolve's combined_score 1.25", or "…, no score in OpenEvolve".
std::string titleOf(const Archive &archive, const ArchivedProgram &program)
{
    std::string title = program.generation ? "generation " + std::to_string(*program.generation) + ", " : "";
    if (program.island)
        title += "island " + std::to_string(*program.island) + ", ";
    return title
           + (program.score ? archive.system + "'s " + scoreText(program) : "no score in " + archive.system);
}

/// "combined_score 1.25, correct; runtime 3.2": what the system said.
std::string saidOf(const ArchivedProgram &program)
{
    constexpr std::size_t mostMetrics = 3;
    std::string said = scoreText(program);
    said +=
        ", " + (program.verdict.empty() ? std::string("correct or not is ") + notStated : program.verdict);
    for (std::size_t i = 0; i < std::min(program.metrics.size(), mostMetrics); ++i) {
        const auto &[name, value] = program.metrics[i];
        said += (i == 0 ? "; " : ", ") + firstLine(name, 30) + ' ' + significantText(value, 6);
    }
    return said;
}

/// 0 -> "a", 25 -> "z", 26 -> "aa".
std::string letters(std::size_t number)
{
    std::string text;
    for (++number; number > 0; number = (number - 1) / 26)
        text.insert(text.begin(), static_cast<char>('a' + (number - 1) % 26));
    return text;
}

class ArchiveImport
{
public:
    ArchiveImport(Archive &archive, const workload::Workload &workload, const ArchiveOptions &options)
        : m_archive(archive)
        , m_workload(workload)
        , m_options(options)
        , m_ancestry(archive)
    {}

    /// Errors: NotFound, the archive has nothing that a lineage can be made of; InvalidInput, of the options; Cancelled.
    Result<lineage::Lineage> make(const std::stop_token &stop)
    {
        if (Status chosen = choose(); !chosen)
            return tl::unexpected(chosen.error());
        if (Status named = nameIt(); !named)
            return tl::unexpected(named.error());
        for (std::size_t most = m_others.size();;) {
            fill(most);
            const std::size_t bytes = lineage::writeLineage(m_lineage).size()
                                      + bytesOfATrial * (m_lineage.states.size() + m_lineage.attempts.size());
            if (bytes <= maxLineageBytes || most == 0)
                break;
            most = std::min(most - 1, most * maxLineageBytes / bytes);
        }
        writeTexts(stop);
        if (stop.stop_requested())
            return fail(ErrorCode::Cancelled, "The import was stopped; nothing was written.");
        sayWhatBecame();
        return std::move(m_lineage);
    }

    [[nodiscard]] const std::vector<lineage::LineageFile> &texts() const { return m_texts; }
    /// Once the lineage is made: each state and attempt, with what is said of it.
    [[nodiscard]] const std::vector<ImportedRow> &rows() const { return m_told; }
    [[nodiscard]] std::vector<std::string> notes() const
    {
        std::vector<std::string> all = m_archive.notes;
        all.insert(all.end(), m_ancestry.notes().begin(), m_ancestry.notes().end());
        all.insert(all.end(), m_notes.begin(), m_notes.end());
        return all;
    }

private:
    [[nodiscard]] const ArchivedProgram &at(int program) const
    {
        return m_archive.programs[static_cast<std::size_t>(program)];
    }

    /// The best program, the surface, who else is of it, the path, and the others in their order.
    Status choose()
    {
        if (m_options.surface)
            leaveOutOthers(*m_options.surface, true);
        int best = m_ancestry.best();
        if (best == Ancestry::none)
            return fail(ErrorCode::NotFound,
                        "It names no best program whose text can be taken, and none of its "
                            + counted(m_archive.programs.size(), "program")
                            + " that can has a score and is not wrong there, so there is no path to follow"
                            + leftOutText() + '.');
        const std::optional<kernel::Surface> surface =
            m_options.surface ? m_options.surface : surfaceOf(at(best));
        if (!surface)
            return fail(ErrorCode::NotFound,
                        "Its best program, " + shownId(at(best).id)
                            + ", is for no surface that can be told: it has no launch plan and no kernel of "
                            + quotedList(kernel::surfaceNames())
                            + ". Name the surface with --surface, if it is one of them.");
        m_surface = *surface;
        leaveOutOthers(m_surface, m_options.surface.has_value());
        m_ancestry.joinCopies();
        best = m_ancestry.originalOf(best);
        m_path = m_ancestry.pathTo(best);
        if (m_path.size() > mostImportedStates) {
            m_notes.push_back(fmt::format(
                "The path to the best program has {} programs; its root and the last {} are states, the "
                "others attempts of K00.",
                m_path.size(), mostImportedStates - 1));
            m_path.erase(m_path.begin() + 1,
                         m_path.end() - static_cast<std::ptrdiff_t>(mostImportedStates - 1));
        }
        const std::set<int> states(m_path.begin(), m_path.end());
        for (const int one : m_ancestry.ranked()) {
            if (states.count(one) == 0)
                m_others.push_back(one);
        }
        m_taken = m_path.size() + m_others.size();
        const std::size_t room = std::min(m_options.most, mostArchivedPrograms);
        m_others.resize(std::min(m_others.size(), room - std::min(room, m_path.size())));
        return {};
    }

    /// knownOnly: programs that do not tell their surface are taken for the one that was named.
    void leaveOutOthers(kernel::Surface surface, bool knownOnly)
    {
        for (ArchivedProgram &program : m_archive.programs) {
            if (!program.leftOut.empty())
                continue;
            const std::optional<kernel::Surface> told = surfaceOf(program);
            if (told ? *told != surface : !knownOnly)
                program.leftOut = told ? std::string("is written for ") + kernel::toString(*told)
                                       : "is for no surface that can be told";
        }
    }

    /// "; left out: …" of all programs whose text is not taken.
    std::string leftOutText() const
    {
        std::map<std::string, Tally> reasons;
        for (const ArchivedProgram &program : m_archive.programs) {
            if (!program.leftOut.empty())
                reasons[program.leftOut].add(shownId(program.id));
        }
        std::string text;
        for (const auto &[reason, programs] : reasons)
            text += (text.empty() ? "; left out: " : "; ") + programs.text()
                    + (programs.count() == 1 ? ", which " : ", each of which ") + reason;
        return text;
    }

    Status nameIt()
    {
        m_lineage.workload = m_workload.name;
        m_lineage.surface = m_surface;
        m_lineage.name = m_options.name.empty() ? m_archive.word : m_options.name;
        m_lineage.platform = m_options.platform;
        if (!m_lineage.platform.empty())
            return {};
        std::set<std::string> fitting;
        for (const std::string &platform : m_options.platforms) {
            if (m_surface.device().isPlatform(platform))
                fitting.insert(platform);
        }
        if (fitting.size() != 1)
            return fail(ErrorCode::InvalidInput,
                        std::string("The archive does not say which platform it is for: name one of ")
                            + m_surface.device().name + " with --platform, as in pocl or sm90.");
        m_lineage.platform = *fitting.begin();
        m_notes.push_back("The platform is " + m_lineage.platform
                          + ", that of the workload's other lineages; --platform names another.");
        return {};
    }

    /// The lineage without its texts, with so many of the others.
    void fill(std::size_t most)
    {
        m_lineage.states.clear();
        m_lineage.transitions.clear();
        m_lineage.attempts.clear();
        m_rows.clear();
        m_ids.clear();
        m_texts.clear();
        for (std::size_t i = 0; i < m_path.size(); ++i)
            addState(i, m_path[i]);
        std::vector<int> kept(m_others.begin(), m_others.begin() + static_cast<std::ptrdiff_t>(most));
        std::map<std::string, std::size_t> children;
        for (const int one : kept)
            addAttempt(one, children);
        const ArchivedProgram &root = at(m_path.front());
        const ArchivedProgram &best = at(m_path.back());
        m_lineage.title =
            fmt::format("{} on {}, found by {}", m_workload.name, m_lineage.platform, m_archive.system);
        m_lineage.origin = fmt::format(
            "{}, {}: {}, of which {} are here; sha-256 of {} {}. Licence: {}.", m_archive.system,
            firstLine(m_archive.name, 80), counted(m_archive.programs.size(), "program"), m_rows.size(),
            m_archive.digestOf, m_archive.sha256, m_archive.license.empty() ? notStated : m_archive.license);
        m_lineage.termination = "unknown";
        m_lineage.reason = fmt::format(
            "The path from {} to {}, the best program there. Scores in titles and reasons are those of {}, "
            "and no trials.",
            shownId(root.id), shownId(best.id), m_archive.system);
    }

    std::string fileName(const std::string &id) const { return id + m_surface.language().extension; }

    void addState(std::size_t number, int program)
    {
        const std::string id = fmt::format("K{:02}", number);
        m_lineage.states.push_back({id, fileName(id), titleOf(m_archive, at(program)), {}});
        m_ids[program] = id;
        m_rows.emplace_back(id, program);
        if (number == 0)
            return;
        const std::string change = at(program).change;
        m_lineage.transitions.push_back({m_lineage.states[number - 1].id,
                                         id,
                                         "other",
                                         notStated,
                                         change.empty() ? "What it changed is " + std::string(notStated) + '.'
                                                        : m_archive.system + " says: " + change,
                                         {}});
    }

    void addAttempt(int program, std::map<std::string, std::size_t> &children)
    {
        const ArchivedProgram &archived = at(program);
        int state = m_ancestry.ancestorOf(program);
        while (state != Ancestry::none && m_ids.count(state) == 0)
            state = m_ancestry.ancestorOf(state);
        const std::string parent = state == Ancestry::none ? m_lineage.states.front().id : m_ids.at(state);
        const std::string id = 'R' + parent.substr(1) + letters(children[parent]++);
        std::string reason = m_archive.system + " says of " + shownId(archived.id) + ": " + saidOf(archived);
        if (state == Ancestry::none)
            reason += archived.parent.empty()
                          ? "; it is a root of its own"
                          : "; no ancestor of it is a state, its parent is " + shownId(archived.parent);
        else if (archived.parent != at(state).id)
            reason += "; its parent is " + shownId(archived.parent);
        m_lineage.attempts.push_back(
            {id, parent, fileName(id), titleOf(m_archive, archived), "other", notStated, reason + '.', {}});
        m_rows.emplace_back(id, program);
    }

    void writeTexts(const std::stop_token &stop)
    {
        for (const auto &[id, program] : m_rows) {
            if (stop.stop_requested())
                return;
            ProgramFile file = programFile(at(program).code, m_surface, m_workload);
            m_plans[file.plan].add(id);
            if (m_why.count(file.plan) == 0)
                m_why[file.plan] = id + ": " + file.why;
            if (file.isHostCut)
                m_cut.add(id);
            tell(id, at(program), file);
            m_texts.push_back({fileName(id), std::move(file.text)});
        }
    }

    void tell(const std::string &id, const ArchivedProgram &program, const ProgramFile &file)
    {
        const std::size_t number = m_told.size();
        const bool isState = number < m_lineage.states.size();
        std::string text = isState ? m_lineage.states[number].title + '.'
                                   : m_lineage.attempts[number - m_lineage.states.size()].reason;
        if (isState && number > 0) {
            const std::string &change = m_lineage.transitions[number - 1].summary;
            text += ' ' + change + (change.ends_with('.') ? "" : ".");
        }
        if (file.plan == ProgramFile::Plan::Proposed)
            text += " Its launch plan is proposed; the gate decides.";
        else if (file.plan != ProgramFile::Plan::Own)
            text += " It cannot be gated before somebody writes its launch plan: " + file.why;
        m_told.push_back({id, isState, program.source, std::move(text)});
    }

    void sayWhatBecame()
    {
        using Plan = ProgramFile::Plan;
        m_notes.push_back(fmt::format("{} and {}, in {}.", counted(m_lineage.states.size(), "state"),
                                      counted(m_lineage.attempts.size(), "attempt"),
                                      m_surface.language().name));
        if (const std::size_t left = m_taken - m_rows.size(); left > 0)
            m_notes.push_back("Left out, with the lowest scores: " + counted(left, "program") + ", because "
                              + (m_rows.size() >= m_options.most
                                     ? "--most is " + std::to_string(m_options.most) + '.'
                                     : "lineage.toml would be longer than it may be."));
        if (const std::string left = leftOutText(); !left.empty()) {
            std::string sentence = left.substr(2);
            sentence.front() = 'L';
            m_notes.push_back(sentence + '.');
        }
        if (const auto proposed = m_plans.find(Plan::Proposed); proposed != m_plans.end()) {
            const std::string which = proposed->second.text();
            m_notes.push_back(
                "Launch plans that are proposed, because the programs have none; the gate decides: " + which
                + '.');
            m_lineage.reason +=
                " Launch plans that are none of its own, but were proposed here: " + which + '.';
        }
        if (m_cut.count() > 0)
            m_notes.push_back(
                "Host code was cut off, or kernels were given C linkage, so that a plan can launch them: "
                + m_cut.text() + '.');
        for (const Plan plan : {Plan::Missing, Plan::Unreadable}) {
            if (const auto found = m_plans.find(plan); found != m_plans.end())
                m_notes.push_back(
                    std::string(plan == Plan::Missing ? "Programs without a launch plan"
                                                      : "Programs with a launch plan that cannot be read")
                    + ", which cannot be gated before somebody writes it: " + found->second.text() + ". "
                    + m_why[plan]);
        }
    }

    Archive &m_archive;
    const workload::Workload &m_workload;
    const ArchiveOptions &m_options;
    Ancestry m_ancestry;
    kernel::Surface m_surface;
    std::vector<int> m_path;
    std::vector<int> m_others; ///< the best first
    std::size_t m_taken = 0;   ///< programs of the surface, before --most
    lineage::Lineage m_lineage;
    std::map<int, std::string> m_ids;                ///< of states
    std::vector<std::pair<std::string, int>> m_rows; ///< id -> program, states first
    std::vector<lineage::LineageFile> m_texts;
    std::vector<ImportedRow> m_told;
    std::map<ProgramFile::Plan, Tally> m_plans;
    std::map<ProgramFile::Plan, std::string> m_why; ///< of the first
    Tally m_cut;
    std::vector<std::string> m_notes;
};

} // namespace

Result<std::vector<ImportEntry>> importArchive(const std::filesystem::path &from,
                                               const workload::Workload &workload,
                                               const ArchiveOptions &options, const std::stop_token &stop)
{
    // Before anything is read; without a name or a platform the archive has its say first.
    const lineage::NewLineage named{workload.name, options.platform, options.name, {}, {}, {}};
    if (const Status free = lineage::checkName(workload.directory, named);
        !options.platform.empty() && !options.name.empty() && !free)
        return tl::unexpected(free.error());
    const std::string source = from.lexically_normal().string();
    Result<Archive> archive = readArchive(from, stop);
    if (!archive && archive.error().code != ErrorCode::InvalidInput)
        return tl::unexpected(archive.error());
    if (!archive)
        return std::vector<ImportEntry>{{source, {}, archive.error().message, false, {}}};

    ImportEntry entry{source, {}, {}, false, {}};
    std::vector<ImportEntry> skipped = std::move(archive->skipped);
    ArchiveImport import(*archive, workload, options);
    Result<lineage::Lineage> made = import.make(stop);
    if (!made && made.error().code != ErrorCode::NotFound)
        return tl::unexpected(made.error());
    entry.notes = import.notes();
    if (!made) {
        entry.reason = made.error().message;
    } else {
        const lineage::NewLineage wanted{workload.name, made->platform, made->name, {}, {}, {}};
        if (const Status free = lineage::checkName(workload.directory, wanted); !free)
            return tl::unexpected(free.error());
        if (!options.dryRun) {
            const auto written =
                lineage::createLineage(workload.directory, *made, import.texts(), std::nullopt, stop);
            if (!written)
                return tl::unexpected(written.error());
            entry.notes.insert(entry.notes.end(), written->notices.begin(), written->notices.end());
        }
        entry.name = made->key();
        entry.rows = import.rows();
    }
    std::vector<ImportEntry> entries{std::move(entry)};
    entries.insert(entries.end(), std::make_move_iterator(skipped.begin()),
                   std::make_move_iterator(skipped.end()));
    return entries;
}

} // namespace klineage::interop
