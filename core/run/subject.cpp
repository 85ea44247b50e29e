// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/subject.h"

#include "core/files/atomicfile.h"
#include "core/files/tomlcomments.h"
#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"
#include "core/kernel/candidatetext.h"
#include "core/lineage/lineage.h"

#include <algorithm>
#include <iterator>

namespace klineage::run {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t maxWorkloadBytes = std::size_t{1} << 20;

Status readState(const fs::path &workspace, const StateName &name, Subject &subject)
{
    const Result<lineage::Lineage> lineage =
        lineage::readLineage(workspace / "workloads" / name.workload / "lineages" / name.folder);
    if (!lineage)
        return tl::unexpected(lineage.error());
    const lineage::State *state =
        name.state.empty() ? &lineage->states.back() : lineage->findState(name.state);
    if (!state)
        return fail(ErrorCode::NotFound,
                    "The lineage " + lineage->key() + " has no state '" + name.state + "'.");
    Result<std::string> text = kernel::readCandidateText(lineage->directory / state->file);
    if (!text)
        return tl::unexpected(text.error());
    subject.label = lineage->key() + '/' + state->id;
    subject.lineage = lineage->key();
    subject.title = state->title;
    subject.origin = lineage->origin;
    subject.text = std::move(*text);
    return {};
}

/// The key of the lineage whose folder the file lies in, a branch's file say; empty when it is in none.
std::string lineageAround(const fs::path &workspace, const fs::path &file, const std::string &workload)
{
    std::error_code failed;
    const fs::path lineages = fs::weakly_canonical(workspace / "workloads" / workload / "lineages", failed);
    const fs::path inside =
        failed ? fs::path() : fs::weakly_canonical(file, failed).lexically_relative(lineages);
    if (failed || inside.empty() || *inside.begin() == ".." || std::next(inside.begin()) == inside.end())
        return {};
    const Result<lineage::Lineage> lineage = lineage::readLineage(lineages / *inside.begin());
    return lineage ? lineage->key() : std::string();
}

Status checkCandidate(const ActiveRun &run, const Subject &subject)
{
    const Result<kernel::Candidate> candidate = kernel::parseCandidate(subject.text, subject.label);
    if (!candidate)
        return tl::unexpected(candidate.error());
    if (candidate->surface == run.surface())
        return {};
    return fail(ErrorCode::InvalidInput, "'" + subject.label + "' is written for the surface '"
                                             + kernel::toString(candidate->surface) + "', the run for '"
                                             + kernel::toString(run.surface()) + "'.");
}

Result<Subject> findSubject(const ActiveRun &run, const std::string &name)
{
    const fs::path &workspace = run.context().workspace;
    const std::string &workload = run.settings().workload;
    const fs::path file = fs::path(name).is_absolute() ? fs::path(name) : workspace / name;
    const std::optional<StateName> state = stateNameOf(name);
    std::error_code ignored;
    Subject subject;
    Status found;
    if (fs::is_regular_file(file, ignored)) {
        // Records travel, folders of this machine do not.
        subject.label = fs::path(name).is_absolute() ? file.filename().string() : name;
        Result<std::string> text = kernel::readCandidateText(file);
        if (!text)
            return tl::unexpected(text.error());
        subject.text = std::move(*text);
        subject.lineage = lineageAround(workspace, file, workload);
    } else if (!state) {
        return fail(ErrorCode::NotFound, "'" + name
                                             + "' is no candidate file and no state; expected a file, "
                                               "WORKLOAD/LINEAGE or WORKLOAD/LINEAGE/STATE.");
    } else if (state->workload != workload) {
        return fail(ErrorCode::InvalidInput, "'" + name + "' belongs to the workload '" + state->workload
                                                 + "', the run to '" + workload + "'.");
    } else if (found = readState(workspace, *state, subject); !found) {
        return tl::unexpected(found.error());
    }
    if (Status sound = checkCandidate(run, subject); !sound)
        return tl::unexpected(sound.error());
    Result<std::string> text =
        files::readFile(workspace / "workloads" / workload / "workload.toml", maxWorkloadBytes);
    if (!text)
        return tl::unexpected(text.error());
    subject.workload =
        files::withoutTomlComments(*text); // what people say beside the task is not for authors
    return subject;
}

std::string writeFacts(const Subject &subject)
{
    files::TomlWriter out;
    out.string("label", subject.label);
    out.optionalString("lineage", subject.lineage);
    out.optionalString("title", subject.title);
    out.optionalString("origin", subject.origin);
    return out.text();
}

Result<Subject> parseFacts(const std::string &text)
{
    const Result<files::TomlDocument> document = files::TomlDocument::parse(text, "subject.toml");
    if (!document)
        return tl::unexpected(document.error());
    const files::TomlTable root = document->root();
    Subject subject;
    subject.label = root.string("label");
    subject.lineage = root.string("lineage", "");
    subject.title = root.string("title", "");
    subject.origin = root.string("origin", "");
    if (Status read = document->finish(); !read)
        return tl::unexpected(read.error());
    return subject;
}

} // namespace

std::optional<StateName> stateNameOf(const std::string &text)
{
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == '/')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    const bool isSound = (parts.size() == 2 || parts.size() == 3)
                         && std::none_of(parts.begin(), parts.end(), [](const std::string &part) {
                                return part.empty() || part == "." || part == "..";
                            });
    if (!isSound)
        return std::nullopt;
    return StateName{parts[0], parts[1], parts.size() == 3 ? parts[2] : std::string()};
}

Result<Subject> keepSubject(const ActiveRun &run, const std::string &name)
{
    std::optional<Result<Subject>> found; // looked for when the first of the files is missing
    const auto keep = [&](const std::string &file, const std::function<std::string(const Subject &)> &part) {
        return run.context().journal.keep(file, [&]() -> Result<std::string> {
            if (!found)
                found = findSubject(run, name);
            return *found ? Result<std::string>(part(**found)) : tl::unexpected(found->error());
        });
    };
    const Result<std::string> text =
        keep(candidateName("subject", run.surface()), [](const Subject &s) { return s.text; });
    if (!text)
        return tl::unexpected(text.error());
    const Result<std::string> workload = keep("workload.toml", [](const Subject &s) { return s.workload; });
    if (!workload)
        return tl::unexpected(workload.error());
    const Result<std::string> facts = keep("subject.toml", writeFacts);
    if (!facts)
        return tl::unexpected(facts.error());
    Result<Subject> subject = parseFacts(*facts);
    if (!subject)
        return subject;
    subject->text = *text;
    subject->workload = *workload;
    return subject;
}

} // namespace klineage::run
