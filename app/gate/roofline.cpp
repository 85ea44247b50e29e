// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gate/roofline.h"

#include "core/trial/analysis/ceilings.h"
#include "core/trial/analysis/figuretext.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace {

using namespace klineage;
using nlohmann::json;

const char *const footer =
    "Measures with built-in kernels, in a second or two a device, and keeps the figures beside a fingerprint of the device\n"
    "(folder roofline of the cache); a trial that needs them measures them too. They are the best of several runs, and a\n"
    "later measurement only raises them. Run it on a quiet machine.";

void print(const char *surface, const gate::Ceilings &ceilings)
{
    std::printf("%s: %s, measured %s in %.1f s\n", surface, ceilings.fingerprint.at("device").c_str(),
                ceilings.time.c_str(), ceilings.seconds);
    std::printf("  %-10s %s ns\n", "launch", gate::formatFigure(ceilings.launchNs).c_str());
    for (const gate::BandwidthCeiling &b : ceilings.bandwidths)
        std::printf("  %-10s copy %s, read %s, write %s (spread %.1f %%)\n",
                    gate::formatScaled(b.footprintBytes, "B").c_str(),
                    gate::formatScaled(b.copy, "B/s").c_str(), gate::formatScaled(b.read, "B/s").c_str(),
                    gate::formatScaled(b.write, "B/s").c_str(), 100 * b.spread);
    for (const gate::RateCeiling &rate : ceilings.rates)
        std::printf("  %-10s %s, at most %s (%s, spread %.1f %%%s)\n", rate.name.c_str(),
                    gate::formatScaled(rate.perSecond, "FLOP/s").c_str(),
                    gate::formatScaled(rate.limit, "FLOP/s").c_str(), rate.method.c_str(), 100 * rate.spread,
                    rate.isBound ? "" : "; not this chip's fastest instructions");
}

} // namespace

CLI::App *RooflineCommand::add(CLI::App &app)
{
    auto *command =
        app.add_subcommand("roofline", "What the devices can do: bandwidths and arithmetic rates, measured");
    command->footer(footer);
    command->add_flag("--measure", measure, "Measure again, and keep the larger figures");
    command->add_flag("--json", json, "Print JSON");
    return command;
}

int RooflineCommand::run(const gate::SupervisorOptions &options) const
{
    gate::Supervisor supervisor(options);
    ::json out = {{"ceilings", ::json::array()}};
    int measured = 0;
    for (const kernel::DeviceTraits &device : kernel::deviceTable()) {
        const auto ceilings =
            supervisor.ceilings(device.kind, measure, {}, [](const gate::GateProgress &progress) {
                std::fprintf(stderr, "%s\n", progress.text.c_str());
            });
        if (ceilings) {
            ++measured;
            if (json)
                out["ceilings"].push_back(::json::parse(gate::writeCeilings(*ceilings)));
            else
                print(device.word, *ceilings);
        } else if (json) {
            out["ceilings"].push_back({{"surface", device.word}, {"missing", ceilings.error().message}});
        } else {
            std::printf("%s: %s\n", device.word, ceilings.error().message.c_str());
            std::fprintf(stderr, "%s", ceilings.error().detail.c_str());
        }
    }
    if (json)
        std::printf("%s\n", out.dump(2, ' ', false, ::json::error_handler_t::replace).c_str());
    return measured > 0 ? 0 : 3; // README.md, "Exit status"
}
