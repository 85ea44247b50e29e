// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/selftest/corpusfile.h"

#include "core/base/identifier.h"
#include "core/base/suggest.h"
#include "core/files/atomicfile.h"
#include "core/files/tomlreader.h"

#include <algorithm>
#include <optional>
#include <set>

namespace klineage::gate {

namespace {

using files::TomlTable;

constexpr std::size_t mostCandidates = 10'000;
constexpr double maxDeadlineSeconds = 3600;

const std::vector<std::pair<std::string, CandidateKind>> kindWords{{"hostile", CandidateKind::Hostile},
                                                                   {"broken", CandidateKind::Broken},
                                                                   {"honest", CandidateKind::Honest}};
const std::vector<std::string> statusNames{"correct", "compile_error", "wrong", "unsafe",
                                           "suspect", "timeout",       "crash", "unavailable"};
const std::vector<std::string> stageNames{"compile", "correctness", "profile"};
const std::vector<std::string> changeNames{"gain", "no_gain", "loss", "undecided"};

template <typename T>
bool contains(const std::vector<T> &values, const T &value)
{
    return std::find(values.begin(), values.end(), value) != values.end();
}

template <typename T, typename FromString>
std::vector<T> readNames(const TomlTable &table, const char *key, const std::vector<std::string> &known,
                         const FromString &fromString)
{
    std::vector<T> values;
    for (const files::TomlText &name : table.texts(key)) {
        if (const std::optional<T> value = fromString(name.text))
            values.push_back(*value);
        else
            table.fail(name.position, "'" + name.text + "' in '" + key + "' is unknown; expected "
                                          + quotedList(known) + ".");
    }
    return values;
}

bool leadsOut(const std::filesystem::path &path)
{
    return path.is_absolute() || contains({path.begin(), path.end()}, std::filesystem::path(".."));
}

/// A candidate's file inside the corpus folder.
std::optional<kernel::Surface> checkFile(const TomlTable &table, const char *key, const std::string &file)
{
    const auto surface = kernel::surfaceOfFile(file);
    if (!table.has(key))
        return surface;
    if (leadsOut(file))
        table.fail(key, "'" + file + "' is no file of this folder; expected a relative path without '..'.");
    else if (!surface)
        table.fail(key, "'" + file + "' is no candidate; expected a file that ends in "
                            + quotedList(kernel::surfaceExtensions()) + ".");
    return surface;
}

void checkParent(const TomlTable &table, const CorpusEntry &entry)
{
    const auto surface = checkFile(table, "parent", entry.parent);
    if (!entry.parent.empty() && surface && *surface != entry.surface)
        table.fail("parent", "'" + entry.parent + "' is of another surface than '" + entry.file + "'.");
    if (entry.changes.empty() != entry.parent.empty())
        table.fail(entry.parent.empty() ? "changes" : "parent",
                   "'parent' and 'changes' belong together; expected both or neither.");
}

/// An expectation must be able to fail, and must say why it lets a cheat pass.
void checkExpectation(const TomlTable &table, const CorpusEntry &entry)
{
    if (entry.expected.empty()) {
        table.fail("expect", "'expect' is empty; expected at least one status.");
        return;
    }
    const bool mayPass = contains(entry.expected, VerdictStatus::Correct);
    if (entry.kind == CandidateKind::Honest && (!mayPass || entry.expected.size() > 1))
        table.fail("expect", "an honest candidate must be accepted; expected [\"correct\"].");
    if (entry.kind != CandidateKind::Honest && mayPass && entry.harmless.empty())
        table.fail("expect", "'correct' for a candidate that is not honest needs a reason; expected the key "
                             "'harmless' with why a pass does no harm.");
    if (!entry.harmless.empty() && (entry.kind == CandidateKind::Honest || !mayPass))
        table.fail("harmless", "'harmless' is only for candidates that are not honest and may be 'correct'.");
}

CorpusEntry readEntry(const TomlTable &table)
{
    CorpusEntry entry;
    entry.file = table.string("file");
    entry.surface = checkFile(table, "file", entry.file).value_or(kernel::Surface());
    entry.workload = table.string("workload");
    if (table.has("workload") && !isSlug(entry.workload))
        table.fail("workload", "'" + entry.workload
                                   + "' is no workload; expected lower-case letters, digits, '_' and '-'.");
    entry.kind = table.choice("kind", kindWords);
    entry.about = table.string("about");
    table.require("expect");
    entry.expected = readNames<VerdictStatus>(table, "expect", statusNames, verdictStatusFromString);
    entry.stages = readNames<Stage>(table, "stages", stageNames, stageFromString);
    entry.parent = table.string("parent", "");
    entry.changes = readNames<Change>(table, "changes", changeNames, changeFromString);
    entry.hides = table.strings("hides");
    entry.harmless = table.string("harmless", "");
    entry.deadlineSeconds = table.number("deadline_s", 0);
    entry.chance = table.boolean("chance", false);
    if (table.has("deadline_s") && (entry.deadlineSeconds <= 0 || entry.deadlineSeconds > maxDeadlineSeconds))
        table.fail("deadline_s", "'deadline_s' is out of range; expected more than 0 and at most 3600.");
    checkParent(table, entry);
    return entry;
}

Status requireFile(const Corpus &corpus, const std::string &file)
{
    std::error_code ignored;
    if (file.empty() || std::filesystem::is_regular_file(corpus.directory / file, ignored))
        return {};
    return fail(ErrorCode::NotFound, "Cannot use " + (corpus.directory / "corpus.toml").string()
                                         + ": there is no file " + file + " beside it.");
}

template <typename T>
std::string listOf(const std::vector<T> &values)
{
    std::vector<std::string> names;
    for (const T value : values)
        names.emplace_back(toString(value));
    return quotedList(names);
}

/// Everything of a verdict that a person may get to see.
bool shows(const Verdict &verdict, const std::string &text)
{
    const auto holds = [&text](const std::string &part) { return part.find(text) != std::string::npos; };
    return holds(verdict.message) || holds(verdict.hint) || holds(verdict.log)
           || std::any_of(verdict.evidence.begin(), verdict.evidence.end(),
                          [&](const Evidence &e) { return holds(e.name) || holds(e.value); });
}

std::string changeMismatch(const CorpusEntry &entry, const Verdict &verdict)
{
    for (const Comparison &comparison : verdict.comparisons) {
        if (comparison.against != "parent")
            continue;
        if (contains(entry.changes, comparison.change))
            return {};
        return std::string("The change against ") + entry.parent + " is '" + toString(comparison.change)
               + "'; expected " + listOf(entry.changes) + ".";
    }
    return "It was not compared with " + entry.parent + ".";
}

} // namespace

const char *toString(CandidateKind kind)
{
    for (const auto &[word, value] : kindWords) {
        if (value == kind)
            return word.c_str();
    }
    return "";
}

Result<std::filesystem::path> Corpus::workloadDirectory(const std::string &workload) const
{
    std::error_code ignored;
    std::filesystem::path found;
    for (const std::string &folder : workloadFolders) {
        const auto path = directory / folder / workload;
        if (!std::filesystem::is_regular_file(path / "workload.toml", ignored))
            continue;
        if (!found.empty() && !std::filesystem::equivalent(found, path, ignored))
            return fail(ErrorCode::InvalidInput, "There are two workloads " + workload + ": in "
                                                     + found.string() + " and in " + path.string() + ".");
        found = path;
    }
    if (!found.empty())
        return found;
    return fail(ErrorCode::NotFound, "Cannot find the workload " + workload + " in "
                                         + quotedList(workloadFolders) + " of " + directory.string() + ".");
}

Result<Corpus> parseCorpus(std::string_view text, const std::string &fileName)
{
    const auto document = files::TomlDocument::parse(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    const TomlTable root = document->root();
    Corpus corpus;
    root.require("workloads");
    corpus.workloadFolders = root.strings("workloads");
    root.require("candidate");
    std::set<std::string> seen;
    for (const TomlTable &table : root.tables("candidate")) {
        if (corpus.entries.size() == mostCandidates) {
            table.fail(table.position(),
                       "there are more than " + std::to_string(mostCandidates) + " candidates.");
            break;
        }
        corpus.entries.push_back(readEntry(table));
        const CorpusEntry &entry = corpus.entries.back();
        if (document->ok())
            checkExpectation(table, entry);
        if (table.has("file") && !seen.insert(entry.file).second)
            table.fail("file", "'" + entry.file + "' is there twice.");
    }
    if (Status status = document->finish(); !status)
        return tl::unexpected(status.error());
    return corpus;
}

Result<Corpus> readCorpus(const std::filesystem::path &directory)
{
    const std::filesystem::path path = directory / "corpus.toml";
    const auto text = files::readFile(path, files::maxTomlBytes);
    if (!text)
        return tl::unexpected(text.error());
    auto corpus = parseCorpus(*text, path.string());
    if (!corpus)
        return corpus;
    corpus->directory = directory;
    for (CorpusEntry &entry : corpus->entries) {
        for (const std::string &file : {entry.file, entry.parent}) {
            if (auto there = requireFile(*corpus, file); !there)
                return tl::unexpected(there.error());
        }
        if (const auto workload = corpus->workloadDirectory(entry.workload); !workload)
            return tl::unexpected(workload.error());
        entry.surface = kernel::surfaceOfCandidate(directory / entry.file).value_or(entry.surface);
    }
    return corpus;
}

std::string mismatch(const CorpusEntry &entry, const Verdict &verdict)
{
    if (!contains(entry.expected, verdict.status))
        return std::string("The status is '") + toString(verdict.status) + "'; expected "
               + listOf(entry.expected) + ".";
    const bool correct = verdict.status == VerdictStatus::Correct;
    if (!correct && !entry.stages.empty() && !contains(entry.stages, verdict.stage))
        return std::string("It was decided in the stage '") + toString(verdict.stage) + "'; expected "
               + listOf(entry.stages) + ".";
    for (const std::string &text : entry.hides) {
        if (shows(verdict, text))
            return "The verdict shows '" + text + "', which it must not.";
    }
    return correct && !entry.changes.empty() ? changeMismatch(entry, verdict) : std::string();
}

} // namespace klineage::gate
