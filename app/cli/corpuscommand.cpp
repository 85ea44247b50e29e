// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"

#include "core/pool/gateclient.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <memory>

#include <unistd.h>

namespace klineage::cli {

namespace {

struct CorpusOptions {
    std::string folder;
    std::string surface;
    std::string filter;
    std::vector<std::string> except;
    std::string profileSeconds;
    std::string compareSeconds;
    std::string again;
};

/// Becomes the gate program: its lines, its signals and its exit status are the verb's own.
int runCorpus(const Session &session, const CorpusOptions &options)
{
    const Result<std::filesystem::path> program = gate::findGateProgram();
    if (!program)
        return session.fail(program.error());
    std::vector<std::string> words = {program->string(), "corpus", options.folder};
    const auto add = [&words](const char *option, const std::string &value) {
        if (!value.empty())
            words.insert(words.end(), {option, value});
    };
    add("--surface", options.surface);
    add("--filter", options.filter);
    for (const std::string &file : options.except)
        add("--except", file);
    add("--profile-seconds", options.profileSeconds);
    add("--compare-seconds", options.compareSeconds);
    add("--again", options.again);
    std::vector<char *> arguments;
    for (std::string &word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execv(arguments.front(), arguments.data());
    return session.fail(
        {ErrorCode::Io, "Cannot start " + program->string() + ": " + std::strerror(errno) + ".", {}});
}

} // namespace

void addCorpusCommand(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<CorpusOptions>();
    CLI::App *verb = session.addVerb(
        group, "corpus",
        "Gate candidates whose verdicts are known: a JSON line each, exit status 1 when one differs",
        [&session, options] { return runCorpus(session, *options); });
    verb->add_option("DIR", options->folder, "Folder with corpus.toml")->required();
    verb->add_option("--surface", options->surface, "Only this surface")
        ->check(CLI::IsMember(kernel::surfaceNames()));
    verb->add_option("--filter", options->filter, "Only files with this in their name");
    verb->add_option("--except", options->except, "Leave this file of the corpus out (repeatable)");
    verb->add_option("--profile-seconds", options->profileSeconds,
                     "Longest timing of a candidate without a parent")
        ->check(CLI::NonNegativeNumber);
    verb->add_option("--compare-seconds", options->compareSeconds,
                     "Longest timing of a candidate with a parent")
        ->check(CLI::NonNegativeNumber);
    verb->add_option("--again", options->again,
                     "Gate what is not as expected so often once more; a mismatch unless all of these are")
        ->check(CLI::Range(0, 100));
}

} // namespace klineage::cli
