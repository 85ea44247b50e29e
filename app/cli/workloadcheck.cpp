// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/texttable.h"

#include "core/base/random.h"
#include "core/gate/check/caseinstance.h"
#include "core/gate/check/shapes.h"
#include "core/gate/check/trivialpass.h"
#include "core/gate/oracle/pythonoracle.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace klineage::cli {

using nlohmann::json;

int checkWorkload(const Session &session, const workload::Workload &workload)
{
    json out = {{"workload", workload.name}, {"cases", json::array()}};
    TextTable table({{"CASE"}, {"OUTPUTS THAT TAKE NO WORK"}});
    std::optional<Error> refused;
    gate::PythonOracles python;
    const gate::ExpectedSource expected =
        [&python](const workload::Workload &w, const workload::Case &c,
                  const std::vector<gate::HostTensor> &tensors,
                  const workload::Tolerance &tolerance) -> Result<gate::ExpectedOutputs> {
        if (!w.python)
            return gate::expectedOnCpu(w, c, tensors, tolerance);
        auto computed = python.compute(w, tensors);
        if (!computed)
            return tl::unexpected(computed.error());
        return gate::expectedOf(std::move(*computed));
    };
    for (const workload::Case &c : workload.cases) {
        const std::uint64_t seed = entropy();
        const workload::Case drawn = gate::drawCase(c, seed);
        const auto instance = gate::makeInstance(workload, drawn, seed, expected);
        if (!instance)
            return session.fail(instance.error());
        const auto pass =
            gate::trivialPass((*instance)->tensors, (*instance)->expected, (*instance)->tolerance);
        if (pass && &c == &workload.cases.front())
            refused = gate::trivialError(workload.name, c.name, *pass);
        table.addRow({drawn.name, pass.value_or("all fail")});
        out["cases"].push_back({{"name", drawn.name}, {"seed", seed}, {"pass", pass ? json(*pass) : json()}});
    }
    out["ok"] = !refused;
    if (session.json())
        session.print(out);
    else
        std::printf("%s", table.text().c_str());
    if (!refused)
        return exitOk;
    std::fprintf(stderr, "klineage-cli: %s\n", refused->message.c_str());
    return exitNegative;
}

} // namespace klineage::cli
