// SPDX-License-Identifier: GPL-3.0-or-later
// The texts of a run's folder and of an experiment.
#include "core/run/experiment/experiment.h"
#include "core/run/materialize/cards.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::run;

FuzzTarget fuzzTarget()
{
    Settings settings;
    settings.id = "one";
    settings.workload = "toy";
    settings.surface = "opencl";
    settings.subject = "toy/pocl/K00";
    settings.provider = "exec";
    settings.author = {{"command", "sh a"}};
    settings.options = {{"patience", "3"}};
    StepRecord step;
    step.number = 3;
    step.time = "2026-01-02T03:04:05Z";
    step.action = "complete";
    step.outcome = "valid";
    step.exchanges = {1, 2};
    step.cards = {"a"};
    step.dollars = 0.25;
    step.speedup = step.best = 1.5;
    step.candidate = std::string(64, 'a');
    CardChoice choice;
    choice.taken.push_back({{"tile", "Tile.", "## Card tile\n"}, 2, {"the same workload"}});
    choice.blocked.push_back({"other", {"requires x at y"}});
    FuzzTarget target;
    target.seeds = {
        writeSettings(settings), writeStep(step), writeCardChoice(choice),
        "title = \"t\"\nroots = [\"//b/K00\", \"--\"]\npolicies = [\"greedy\"]\nseeds = [1]\nprovider = \"exec\"\n"
        "[author]\ncommand = \"x\"\n",
        "title = \"t\"\nroots = [\"a/b/K00\"]\npolicies = [\"greedy\"]\nseeds = [1, 2]\n"
        "provider = \"exec\"\n[author]\ncommand = \"x\"\n"};
    target.words = {"\"step\":",
                    "kind = \"lift\"\n",
                    "[options]\n",
                    "[author]\n",
                    "seeds = [",
                    "roots = [",
                    "\"exchanges\":[",
                    "-1",
                    "1e999",
                    "9223372036854775807",
                    "\"",
                    "{",
                    "}",
                    "[",
                    "]",
                    "\n",
                    "\"klineage\"",
                    "\"reasons\":[",
                    "../",
                    "\\u0000"};
    target.runs = 8'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string text(reinterpret_cast<const char *>(data), size);
    if (const auto settings = parseSettings(text, "run.toml")) {
        const std::string written = writeSettings(*settings);
        const auto again = parseSettings(written, "again");
        require(again && writeSettings(*again) == written, "settings are kept");
        require(isRunId(settings->id), "an id is a name of a folder");
    } else {
        requireLocated(settings.error(), "run.toml:");
    }
    if (const auto step = parseStep(text, "steps.jsonl:1")) {
        const std::string written = writeStep(*step);
        const auto again = parseStep(written, "again");
        require(again && writeStep(*again) == written, "steps are kept");
        require(written.find('\n') == std::string::npos, "a step is a line");
    } else {
        requireLocated(step.error(), "steps.jsonl:1:");
    }
    if (const auto choice = parseCardChoice(text, "cards.json")) {
        const auto again = parseCardChoice(writeCardChoice(*choice), "again");
        require(again && writeCardChoice(*again) == writeCardChoice(*choice), "cards are kept");
    } else {
        requireLocated(choice.error(), "cards.json:");
    }
    if (const auto experiment = parseExperiment(text, "experiment.toml")) {
        const std::string written = writeExperiment(*experiment);
        const auto again = parseExperiment(written, "again");
        require(again && writeExperiment(*again) == written, "experiments are kept");
        if (experiment->seeds.size() < 100) {
            for (const Cell &cell : cellsOf(*experiment))
                require(isRunId(cell.runId), "a run of an experiment has a name of a folder");
        }
    } else {
        requireLocated(experiment.error(), "experiment.toml:");
    }
    return 0;
}
