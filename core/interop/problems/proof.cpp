// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/problems/proof.h"

#include "core/base/random.h"
#include "core/gate/check/caseinstance.h"
#include "core/gate/check/shapes.h"
#include "core/gate/check/trivialpass.h"
#include "core/gate/oracle/pythonoracle.h"

#include <algorithm>
#include <cmath>

namespace klineage::interop {

namespace {

using workload::Case;
using workload::PythonArrays;
using workload::Workload;

constexpr double mostDifference =
    0.05; ///< of a computation in double and one in the declared types, relative L2
constexpr int drawsOfAShape = 3;

class Prover
{
public:
    Prover(Draft &draft, std::stop_token stop)
        : m_draft(draft)
        , m_stop(std::move(stop))
    {}

    Status run()
    {
        if (auto settled = settleArrays(); !settled)
            return settled;
        settlePrecision();
        if (auto timed = timedCase(); !timed)
            return timed;
        takeOutCases();
        return {};
    }

private:
    Workload &workload() { return m_draft.workload; }
    workload::PythonOracle &oracle() { return *m_draft.workload.python; }

    Result<gate::CaseInstancePtr> compute(const Case &c, std::uint64_t seed)
    {
        return gate::makeInstance(workload(), gate::drawCase(c, seed), seed,
                                  [this](const Workload &w, const Case &,
                                         const std::vector<gate::HostTensor> &tensors,
                                         const workload::Tolerance &) -> Result<gate::ExpectedOutputs> {
                                      auto computed = m_python.compute(w, tensors, m_stop);
                                      if (!computed)
                                          return tl::unexpected(computed.error());
                                      return gate::expectedOf(std::move(*computed));
                                  });
    }

    /// The case of the least bytes.
    const Case &smallest()
    {
        const auto bytesOf = [&](const Case &c) {
            return c.drawn.empty() ? workload().bytes.evaluateReal(workload().bindings(c)).value_or(INFINITY)
                                   : INFINITY;
        };
        return *std::min_element(workload().cases.begin(), workload().cases.end(),
                                 [&](const Case &a, const Case &b) { return bytesOf(a) < bytesOf(b); });
    }

    /// The first kind of arrays that is installed and that it takes in either precision.
    Status settleArrays()
    {
        std::optional<Error> first;
        for (const PythonArrays arrays : arraysOf(oracle().source)) {
            oracle().arrays = arrays;
            for (const bool declared : {false, true}) {
                oracle().declared = declared;
                const auto made = compute(smallest(), 1);
                if (made)
                    return {};
                if (!first)
                    first = made.error();
                if (made.error().code == ErrorCode::Cancelled || made.error().code == ErrorCode::Timeout)
                    return tl::unexpected(made.error());
                if (made.error().code != ErrorCode::InvalidInput)
                    break; // what the other precision does not change
                first = made.error();
            }
        }
        return tl::unexpected(*first);
    }

    void settlePrecision()
    {
        if (oracle().declared) {
            m_draft.notes.push_back(
                "The reference does not take double, so it computes in the types of the tensors.");
            return;
        }
        const auto wide = compute(smallest(), 1);
        oracle().declared = true;
        const auto narrow = compute(smallest(), 1);
        oracle().declared = false;
        if (!wide || !narrow)
            return;
        for (const auto &[name, values] : (*wide)->expected) {
            double difference = 0, norm = 0;
            const gate::ExpectedValues &other = (*narrow)->expected.at(name);
            for (std::size_t i = 0; i < values.size(); ++i) {
                if (std::isfinite(values[i]) && std::isfinite(other[i])) {
                    difference += (values[i] - other[i]) * (values[i] - other[i]);
                    norm += values[i] * values[i];
                }
            }
            if (difference > mostDifference * mostDifference * norm) {
                oracle().declared = true;
                m_draft.notes.push_back(
                    "In double the reference computes something else, so it computes in the types of the tensors.");
                return;
            }
        }
    }

    Status timedCase()
    {
        const Case &timed = workload().cases.front();
        const auto made = compute(timed, entropy());
        if (!made)
            return tl::unexpected(made.error());
        if (const auto pass = gate::trivialPass((*made)->tensors, (*made)->expected, (*made)->tolerance))
            return tl::unexpected(gate::trivialError(workload().name, timed.name, *pass));
        return {};
    }

    void takeOutCases()
    {
        std::vector<Case> kept = {workload().cases.front()};
        for (std::size_t i = 1; i < workload().cases.size(); ++i) {
            const Case &c = workload().cases[i];
            std::optional<std::string> why;
            for (int draw = 0; draw < (c.drawn.empty() ? 1 : drawsOfAShape) && !why; ++draw) {
                if (const auto made = compute(c, entropy()); !made)
                    why = made.error().message;
            }
            if (why)
                m_draft.notes.push_back("The case '" + c.name + "' is left out: " + *why);
            else
                kept.push_back(c);
        }
        workload().cases = std::move(kept);
    }

    Draft &m_draft;
    const std::stop_token m_stop;
    gate::PythonOracles m_python;
};

} // namespace

Status prove(Draft &draft, const std::stop_token &stop)
{
    return Prover(draft, stop).run();
}

} // namespace klineage::interop
