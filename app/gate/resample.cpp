// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gate/resample.h"

#include "core/trial/shareof.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>

namespace {

using namespace klineage;

const char *const resampleFooter =
    "DIR holds workloads with lineages, as workloads/ of a workspace. Noise is what their recorded trials kept of a candidate and its\n"
    "copy; no device is used. One JSON object: trials, gains, losses, undecided, how many blocks they took, and \"false\": the share\n"
    "of gains and losses (with --slower: of gains and of losses that were not found), with an exact interval of 95 %.";

double fiveDigits(double value)
{
    return std::round(value * 1e5) / 1e5;
}

} // namespace

CLI::App *ResampleCommand::add(CLI::App &app)
{
    auto *command = app.add_subcommand("resample", "How often comparisons err, on recorded noise");
    command->footer(resampleFooter);
    command->add_option("DIR", library, "Folder of workloads")->required();
    command->add_option("--platform", platform, "Lineages of this platform");
    command->add_option("--trials", options.trials, "Trials to draw")->check(CLI::Range(1, 10'000'000));
    command->add_option("--slower", options.slower,
                        "How much longer the candidate takes than its parent, as 0.005");
    command->add_flag("!--precise", options.quick, "To a half-width instead of until it is decided");
    command->add_option("--half-width", options.targetHalfWidth,
                        "Relative 95 % half-width that is asked for");
    command->add_option("--most-blocks", options.mostBlocks, "When the time is up");
    command->add_option("--floor-below", quietest, "Only noise of recorded trials whose copies were so near");
    command->add_option("--seed", options.seed, "Of what is drawn");
    return command;
}

Status ResampleCommand::run() const
{
    auto noise = gate::recordedNoise(library, platform);
    if (!noise)
        return tl::unexpected(noise.error());
    if (quietest > 0)
        std::erase_if(*noise, [this](const gate::Noise &one) { return gate::floorOf(one) >= quietest; });
    if (noise->empty())
        return fail(ErrorCode::InvalidInput, "No recorded trial of " + platform + " in " + library
                                                 + " has enough rounds of a candidate and its copy.");
    const gate::ResampleCounts counts = gate::resample(*noise, options);
    const int wrong = options.slower > 0 ? options.trials - counts.losses : counts.gains + counts.losses;
    const gate::Interval share = gate::shareOf(wrong, options.trials);
    const nlohmann::json line = {
        {"bench", "resampled"},
        {"platform", platform},
        {"recorded", noise->size()},
        {"trials", options.trials},
        {"quick", options.quick},
        {"slower", options.slower},
        {"gains", counts.gains},
        {"losses", counts.losses},
        {"undecided", counts.undecided},
        {"blocks_p50", counts.blocksP50},
        {"blocks_p95", counts.blocksP95},
        {"false", {fiveDigits(share.value), fiveDigits(share.low), fiveDigits(share.high)}}};
    std::printf("%s\n", line.dump().c_str());
    return {};
}
