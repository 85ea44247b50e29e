// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/deoptimize/walk.h"

#include "core/files/atomicfile.h"
#include "core/files/filehandle.h"
#include "core/files/jsonlines.h"
#include "core/files/sha256.h"
#include "core/files/tomlreader.h"
#include "core/lineage/lineage.h"
#include "core/trial/listing.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>

#include <fcntl.h>
#include <stdio.h>

namespace klineage::run {

namespace fs = std::filesystem;

namespace {

std::string numbered(const char *letter, std::size_t number)
{
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%s%02zu", letter, number);
    return buffer;
}

/// a … z, aa … zz, …
std::string letters(std::size_t index)
{
    std::string text(1, static_cast<char>('a' + index % 26));
    return index < 26 ? text : letters(index / 26 - 1) + text;
}

/// A lineage with its files, in memory.
struct Draft {
    lineage::Lineage lineage;
    std::map<std::string, std::string> files;      ///< relative name -> text
    std::map<std::string, std::string> nameOfText; ///< sha-256 -> relative name
};

class Drafter
{
public:
    Drafter(const WalkHead &head, const Walk &walk)
        : m_head(head)
        , m_walk(walk)
    {}

    Draft run()
    {
        lineage::Lineage &lineage = m_draft.lineage;
        lineage.workload = m_head.workload;
        lineage.platform = m_head.platform;
        lineage.name = m_head.name;
        lineage.surface = m_head.surface;
        lineage.title = m_head.title;
        lineage.origin = m_head.origin;
        lineage.termination = m_walk.termination;
        lineage.reason = m_walk.reason;
        lineage.run = m_head.run;
        for (std::size_t i = m_walk.states.size(); i-- > 0;)
            addState(i);
        for (std::size_t i = m_walk.steps.size(); i-- > 0;)
            addTransition(i);
        addAttempts();
        addTrials();
        return std::move(m_draft);
    }

private:
    /// K00 is the last of the walk.
    [[nodiscard]] std::string idOf(std::size_t index) const
    {
        return numbered("K", m_walk.states.size() - 1 - index);
    }

    void addFile(const std::string &name, const std::string &text)
    {
        m_draft.files[name] = text;
        m_draft.nameOfText.emplace(files::sha256Hex(text), name);
    }

    void addState(std::size_t index)
    {
        const Walk::State &state = m_walk.states[index];
        const std::string id = idOf(index);
        const std::string file = candidateName(id, m_head.surface);
        addFile(file, state.text);
        m_draft.lineage.states.push_back({id, file, state.title, state.trial.id});
    }

    void addTransition(std::size_t index)
    {
        const Walk::Step &step = m_walk.steps[index];
        lineage::Transition transition;
        transition.from = idOf(index + 1);
        transition.to = idOf(index);
        transition.category = step.category;
        transition.locus = step.locus;
        transition.summary = step.summary;
        transition.rederived = "rederived/" + candidateName(transition.to, m_head.surface);
        transition.rederivedTrial = step.rederivedTrial.id;
        transition.rederivedMatch = step.rederivedMatch.id;
        addFile(transition.rederived, step.rederived);
        m_draft.lineage.transitions.push_back(std::move(transition));
    }

    void addAttempts()
    {
        std::map<std::size_t, std::size_t> count;
        for (const Walk::Attempt &attempt : m_walk.attempts) {
            const std::size_t number = m_walk.states.size() - 1 - attempt.parent;
            const std::string id = numbered("R", number) + letters(count[attempt.parent]++);
            const std::string file = candidateName(id, m_head.surface);
            addFile(file, attempt.text);
            m_draft.lineage.attempts.push_back({id, idOf(attempt.parent), file, attempt.title,
                                                attempt.category, attempt.locus, attempt.reason,
                                                attempt.trial.id});
        }
    }

    void addTrials()
    {
        for (gate::Trial trial : m_walk.trials) {
            const auto text = m_walk.texts.find(trial.candidate);
            if (m_draft.nameOfText.count(trial.candidate) == 0 && text != m_walk.texts.end())
                addFile(lineage::branchFileName(trial.candidate, m_head.surface), text->second);
            const auto name = m_draft.nameOfText.find(trial.candidate);
            trial.file = name == m_draft.nameOfText.end() ? std::string() : name->second;
            if (!trial.listing.empty())
                takeListing(gate::listingFileName(trial.listing));
            m_draft.lineage.trials.push_back(std::move(trial));
        }
    }

    void takeListing(const std::string &name)
    {
        if (auto text = files::readFile(m_head.runDirectory / name, gate::maxListingBytes))
            m_draft.files[name] = std::move(*text);
    }

    const WalkHead &m_head;
    const Walk &m_walk;
    Draft m_draft;
};

/// What others added to the folder since: cards of the transitions, trials that are not the walk's, and branch files.
void takeOver(const lineage::Lineage &older, Draft &draft)
{
    // A walk that went on has more states below, so that ids moved: from K* down, transitions stay where they are.
    const std::size_t shared = std::min(older.transitions.size(), draft.lineage.transitions.size());
    for (std::size_t i = 1; i <= shared; ++i) {
        const lineage::Transition &was = older.transitions[older.transitions.size() - i];
        lineage::Transition &now = draft.lineage.transitions[draft.lineage.transitions.size() - i];
        if (was.category == now.category && was.locus == now.locus)
            now.card = was.card;
    }
    for (const gate::Trial &trial : older.trials) {
        if (!draft.lineage.findTrial(trial.id))
            draft.lineage.trials.push_back(trial);
    }
    if (Result<std::string> comments =
            files::readFile(older.directory / "comments.jsonl", files::maxLinesFileBytes))
        draft.files.emplace("comments.jsonl", std::move(*comments));
    std::error_code problem;
    for (const char *folder : {"branches", "listings"}) {
        for (fs::directory_iterator it(older.directory / folder, problem), end; !problem && it != end;
             it.increment(problem)) {
            const std::string name = folder + ('/' + it->path().filename().string());
            Result<std::string> text = files::readFile(it->path(), gate::maxListingBytes);
            if (text && draft.nameOfText.count(files::sha256Hex(*text)) == 0)
                draft.files.emplace(name, std::move(*text));
        }
    }
}

bool isThereAlready(const lineage::Lineage &older, const Draft &draft)
{
    const Result<std::string> toml = files::readFile(older.directory / "lineage.toml", files::maxTomlBytes);
    if (!toml || *toml != lineage::writeLineage(draft.lineage)
        || older.trials.size() != draft.lineage.trials.size())
        return false;
    return std::all_of(draft.files.begin(), draft.files.end(), [&](const auto &file) {
        const Result<std::string> text = files::readFile(older.directory / file.first, gate::maxListingBytes);
        return text && *text == file.second;
    });
}

Status writeDraft(const fs::path &directory, const Draft &draft)
{
    std::error_code problem;
    fs::remove_all(directory, problem);
    std::set<fs::path> folders{directory};
    for (const auto &[name, text] : draft.files)
        folders.insert((directory / name).parent_path());
    for (const fs::path &folder : folders) {
        fs::create_directories(folder, problem);
        if (problem)
            return files::systemError("create", folder, problem.value());
    }
    for (const auto &[name, text] : draft.files) {
        if (Status written = files::writeFileAtomic(directory / name, text); !written)
            return written;
    }
    std::string lines;
    for (const gate::Trial &trial : draft.lineage.trials)
        lines += gate::writeTrial(trial) + '\n';
    if (Status written = files::writeFileAtomic(directory / "trials.jsonl", lines); !written)
        return written;
    return files::writeFileAtomic(directory / "lineage.toml", lineage::writeLineage(draft.lineage));
}

/// The folder appears, or takes the older one's place, at once.
Status putInPlace(const fs::path &made, const fs::path &directory, bool replace)
{
    const unsigned flags = replace ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, directory.c_str(), flags) != 0)
        return files::systemError("put in place", directory, errno);
    std::error_code ignored;
    if (replace)
        fs::remove_all(made, ignored);
    return files::syncFolder(directory.parent_path());
}

} // namespace

Status checkWalkFolder(const fs::path &directory, const std::string &run)
{
    std::error_code ignored;
    if (!fs::exists(directory, ignored))
        return {};
    const Result<lineage::Lineage> older = lineage::readLineage(directory);
    if (older && older->run == run)
        return {};
    return fail(ErrorCode::Conflict,
                "There is a lineage '" + directory.filename().string()
                    + "' already that this run did not write; give the new one another name.");
}

Status writeWalk(const fs::path &directory, const WalkHead &head, const Walk &walk)
{
    if (Status ours = checkWalkFolder(directory, head.run); !ours)
        return ours;
    Draft draft = Drafter(head, walk).run();
    std::error_code ignored;
    const bool replace = fs::exists(directory, ignored);
    if (replace) {
        const Result<lineage::Lineage> older = lineage::readLineage(directory);
        if (!older)
            return tl::unexpected(older.error());
        takeOver(*older, draft);
        if (isThereAlready(*older, draft))
            return {};
    }
    const fs::path made =
        directory.parent_path() / (".new-" + directory.filename().string() + '-' + head.run);
    if (Status written = writeDraft(made, draft); !written) {
        fs::remove_all(made, ignored);
        return written;
    }
    return putInPlace(made, directory, replace);
}

} // namespace klineage::run
