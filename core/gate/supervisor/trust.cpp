// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/trust.h"

namespace klineage::gate {

namespace {

std::string factOf(const Trial &trial, const std::string &name)
{
    const auto found = trial.environment.facts.find(name);
    return found == trial.environment.facts.end() ? std::string() : found->second;
}

void say(Trial &trial, Trust trust, const std::string &why)
{
    trial.trust = trust;
    trial.verdict.evidence.push_back({"trust", why});
}

} // namespace

void sayTrust(Trial &trial)
{
    if (!trial.surface.device().isHost) {
        if (factOf(trial, "reaches_host_memory") == "no")
            say(trial, Trust::Isolated, "it runs on a device that reaches no memory of the host's processes");
        else
            say(trial, Trust::Audited,
                "the device may reach memory of its worker's process: outputs are judged in another one");
        return;
    }
    const std::string isolation = factOf(trial, "isolation");
    if (isolation.find("sealed") == std::string::npos)
        say(trial, Trust::Advisory,
            "it runs in its worker's process, which could not be sealed (isolation: "
                + (isolation.empty() ? "none" : isolation) + ")");
    else
        say(trial, Trust::Audited,
            "it runs in its worker's process, which can do nothing but compute (" + isolation
                + "), and the supervisor's clock was compared with the worker's");
}

} // namespace klineage::gate
