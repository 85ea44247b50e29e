// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"

#include "core/files/atomicfile.h"
#include "core/process/childprocess.h"
#include "core/report/report.h"
#include "core/report/writers.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <unistd.h>

namespace klineage::cli {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr double drawingSeconds = 300;

struct ReportOptions {
    std::string name;
    std::string output;
};

/// klineage has the drawing code of the plots; it stands beside this program or on PATH.
std::optional<fs::path> findWindowProgram()
{
    std::error_code ignored;
    std::vector<fs::path> folders{fs::read_symlink("/proc/self/exe", ignored).parent_path()};
    const char *path = std::getenv("PATH");
    const std::string listed = path ? path : "";
    for (std::size_t begin = 0; begin < listed.size();) {
        const std::size_t end = std::min(listed.find(':', begin), listed.size());
        folders.emplace_back(listed.substr(begin, end - begin));
        begin = end + 1;
    }
    for (const fs::path &folder : folders) {
        const fs::path program = folder / "klineage";
        if (!folder.empty() && fs::is_regular_file(program, ignored) && ::access(program.c_str(), X_OK) == 0)
            return program;
    }
    return std::nullopt;
}

std::string withoutNewline(std::string text)
{
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    return text;
}

Status drawReport(const fs::path &workspace, const std::string &name, const fs::path &output)
{
    const auto program = findWindowProgram();
    if (!program)
        return fail(
            ErrorCode::NotFound,
            "Cannot draw the figures of '" + output.string()
                + "': klineage, which has the drawing code, is neither beside this program nor on PATH.",
            "Build the target klineage (it needs Qt), or write the report without figures: -o report.md.");
    process::ChildOptions options;
    options.command = {program->string(), "--workspace",  workspace.string(), "--report", name,
                       "--output",        output.string()};
    Result<process::ChildProcess> child = process::ChildProcess::start(options);
    if (!child)
        return tl::unexpected(child.error());
    const Result<process::ExitStatus> status = child->wait(process::Deadline::in(drawingSeconds));
    if (!status)
        return tl::unexpected(status.error());
    const std::string said = withoutNewline(child->standardError().text);
    if (!status->ok())
        return fail(ErrorCode::Io, said.empty() ? "Cannot write the report '" + output.string()
                                                      + "': klineage ended with " + status->describe() + "."
                                                : said);
    if (!said.empty())
        std::fprintf(stderr, "%s\n", said.c_str());
    return {};
}

const char *kindOf(const report::Subject &subject)
{
    return subject.lineage ? "lineage" : subject.run ? "run" : "experiment";
}

int writeReport(const Session &session, const ReportOptions &options)
{
    const std::string suffix = fs::path(options.output).extension().string();
    if (suffix != ".html" && suffix != ".pdf" && suffix != ".md")
        return session.usage("Cannot write the report '" + options.output
                             + "': the name must end in .html, .pdf or .md.");
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    for (const Error &problem : workspace->problems)
        std::fprintf(stderr, "klineage-cli: %s\n", problem.message.c_str());
    const Result<report::Subject> subject = report::findSubject(*workspace, options.name);
    if (!subject)
        return subject.error().code == ErrorCode::NotFound ? session.usage(subject.error().message)
                                                           : session.fail(subject.error());
    const Status written = suffix == ".md" ? files::writeFileAtomic(
                               options.output, report::asMarkdown(report::makeReport(*workspace, *subject)))
                                           : drawReport(workspace->root, options.name, options.output);
    if (!written)
        return session.fail(written.error());
    if (session.json())
        session.print({{"kind", kindOf(*subject)}, {"name", options.name}, {"written", options.output}});
    else
        std::printf("Wrote %s\n", options.output.c_str());
    return exitOk;
}

} // namespace

void addReportCommand(CLI::App &app, Session &session)
{
    const auto options = std::make_shared<ReportOptions>();
    CLI::App *verb =
        session.addVerb(app, "report", "A lineage, a run or an experiment as one file to read and to send",
                        [&session, options] { return writeReport(session, *options); });
    verb->add_option("name", options->name,
                     "WORKLOAD/PLATFORM, run:ID, experiment:NAME, or the folder of one of these two")
        ->required();
    verb->add_option(
            "-o,--output", options->output,
            "FILE.html (one page, figures as SVG) and FILE.pdf (A4) need klineage beside this program; FILE.md has the tables alone")
        ->required();
}

} // namespace klineage::cli
