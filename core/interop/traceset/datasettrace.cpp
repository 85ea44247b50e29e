// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/traceset/datasettrace.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace klineage::interop {

namespace {

using files::OrderedJson;
using gate::VerdictStatus;
using workload::Case;
using workload::Workload;

constexpr double nsPerMs = 1e6;

const std::string *evidenceOf(const gate::Verdict &verdict, std::string_view name)
{
    for (const gate::Evidence &evidence : verdict.evidence) {
        if (evidence.name == name)
            return &evidence.value;
    }
    return nullptr;
}

OrderedJson intervalJson(const gate::Interval &interval, double unit)
{
    return OrderedJson::array({interval.low / unit, interval.high / unit});
}

/// The libraries of the environment: what compiled and drove, and the versions of the references that took part.
OrderedJson environmentJson(const gate::Trial &trial)
{
    OrderedJson libs = OrderedJson::object();
    for (const char *fact : {"compiler", "driver", "cuda_driver"}) {
        const auto found = trial.environment.facts.find(fact);
        if (found != trial.environment.facts.end() && !found->second.empty())
            libs[fact] = found->second;
    }
    for (const gate::Comparison &comparison : trial.verdict.comparisons) {
        if (comparison.against != "parent" && !comparison.subject.empty())
            libs[comparison.against] = comparison.subject;
    }
    return {{"hardware", trial.environment.device}, {"libs", std::move(libs)}};
}

OrderedJson performanceJson(const gate::Trial &trial)
{
    OrderedJson json;
    json["latency_ms"] = trial.latencyNs.value / nsPerMs;
    if (const gate::Comparison *reference = trial.referenceComparison()) {
        json["reference_latency_ms"] = reference->otherNs / nsPerMs;
        json["speedup_factor"] = reference->speedup.value;
    }
    return json;
}

/// What the format has no keys for, in its one free place.
OrderedJson extraJson(const gate::Trial &trial)
{
    OrderedJson extra;
    extra["trial"] = trial.id;
    files::setUnlessEmpty(extra, "gate", trial.gateVersion);
    if (trial.trust != gate::Trust::Unsaid)
        extra["trust"] = gate::toString(trial.trust);
    if (trial.latencyNs.value > 0)
        extra["latency_ms_95"] = intervalJson(trial.latencyNs, nsPerMs);
    const auto compared = [&](const gate::Comparison &comparison) {
        OrderedJson json;
        json[comparison.against == "parent" ? "sha256" : "version"] = comparison.subject;
        json["latency_ms"] = comparison.otherNs / nsPerMs;
        json["speedup_factor"] = comparison.speedup.value;
        json["speedup_95"] = intervalJson(comparison.speedup, 1);
        json["change"] = gate::toString(comparison.change);
        return json;
    };
    if (const gate::Comparison *reference = trial.referenceComparison()) {
        extra["reference"] = {{"name", reference->against}};
        extra["reference"].update(compared(*reference));
    }
    if (const gate::Comparison *parent = trial.comparison("parent"))
        extra["parent"] = compared(*parent);
    OrderedJson evidence = OrderedJson::object();
    for (const gate::Evidence &fact : trial.verdict.evidence) {
        if (const auto found = evidence.find(fact.name); found != evidence.end())
            *found = found->get<std::string>() + "; " + fact.value;
        else
            evidence[fact.name] = fact.value;
    }
    if (!evidence.empty())
        extra["evidence"] = std::move(evidence);
    return extra;
}

std::string logOf(const gate::Trial &trial)
{
    const gate::Verdict &verdict = trial.verdict;
    std::string log = "KLineage trial " + trial.id + ", " + gate::toString(verdict.status) + " ("
                      + verdict.reason + "), decided in the stage " + gate::toString(verdict.stage) + ".\n";
    for (const std::string *text : {&verdict.message, &verdict.hint, &verdict.log}) {
        if (!text->empty())
            log += *text + (text->back() == '\n' ? "" : "\n");
    }
    return log;
}

tl::unexpected<Error> leftOut(std::string why)
{
    return fail(ErrorCode::InvalidInput, std::move(why));
}

/// What it was judged on, or why that cannot be told.
Result<Case> decidingCase(const Workload &workload, const gate::Verdict &verdict)
{
    const std::string *named = evidenceOf(verdict, "case");
    if (verdict.status == VerdictStatus::Correct)
        return workload.cases.front();
    if (!named) {
        if (verdict.status == VerdictStatus::CompileError)
            return workload.cases.front(); // one compilation serves every case
        return leftOut("they do not say in which case they failed");
    }
    auto found = caseCalled(workload, *named);
    if (!found)
        return leftOut("their case '" + named->substr(0, 100) + "' is none of the workload's");
    return *found;
}

} // namespace

const char *datasetStatus(VerdictStatus status)
{
    switch (status) {
    case VerdictStatus::Correct:
        return "PASSED";
    case VerdictStatus::CompileError:
        return "COMPILE_ERROR";
    case VerdictStatus::Wrong:
        return "INCORRECT_NUMERICAL";
    case VerdictStatus::Timeout:
        return "TIMEOUT";
    case VerdictStatus::Crash:
    case VerdictStatus::Unsafe:
        return "RUNTIME_ERROR";
    case VerdictStatus::Suspect:
    case VerdictStatus::Unavailable:
        break;
    }
    return nullptr;
}

std::optional<Case> caseCalled(const Workload &workload, const std::string &text)
{
    if (const Case *exact = workload.findCase(text))
        return exact->drawn.empty() ? std::optional(*exact) : std::nullopt;
    const std::size_t open = text.find(" (");
    const Case *drawn = open == std::string::npos ? nullptr : workload.findCase(text.substr(0, open));
    if (!drawn || text.back() != ')')
        return std::nullopt;
    Case found = *drawn;
    std::string_view rest = std::string_view(text).substr(open + 2);
    while (!rest.empty()) {
        const std::size_t equals = rest.find(" = ");
        const std::size_t end = rest.find_first_of(",)");
        if (equals == std::string_view::npos || end == std::string_view::npos || end < equals)
            return std::nullopt;
        const std::string axis(rest.substr(0, equals));
        const std::string_view number = rest.substr(equals + 3, end - equals - 3);
        const auto range = found.drawn.find(axis);
        std::int64_t value = 0;
        const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
        if (range == found.drawn.end() || read.ec != std::errc() || read.ptr != number.data() + number.size()
            || value < range->second.low || value > range->second.high)
            return std::nullopt;
        found.axes[axis] = value;
        found.drawn.erase(range);
        rest.remove_prefix(std::min(rest.size(), end + (rest[end] == ',' ? 2 : 1)));
    }
    found.name = text;
    return found.drawn.empty() ? std::optional(found) : std::nullopt;
}

Result<DatasetLine> datasetTraceOf(const DatasetDefinition &definition, const Workload &workload,
                                   const std::string &solution, const gate::Trial &trial)
{
    const gate::Verdict &verdict = trial.verdict;
    const char *status = datasetStatus(verdict.status);
    if (!status)
        return leftOut("no status of the format means '" + std::string(gate::toString(verdict.status)) + "'");
    const bool isPassed = verdict.status == VerdictStatus::Correct;
    if (isPassed && !(std::isfinite(trial.latencyNs.value) && trial.latencyNs.value > 0))
        return leftOut("they are correct and were not timed, and PASSED wants a latency");
    if (trial.environment.device.empty() || trial.time.empty())
        return leftOut("they do not say when or on what device they ran");
    const Result<Case> c = decidingCase(workload, verdict);
    if (!c)
        return tl::unexpected(c.error());
    Result<DatasetLine> line = datasetWorkloadOf(definition, workload, *c);
    if (!line)
        return line;

    OrderedJson evaluation;
    evaluation["status"] = status;
    evaluation["environment"] = environmentJson(trial);
    evaluation["timestamp"] = trial.time;
    evaluation["log"] = logOf(trial);
    if (isPassed || verdict.status == VerdictStatus::Wrong)
        evaluation["correctness"]["extra"] = extraJson(trial);
    if (isPassed)
        evaluation["performance"] = performanceJson(trial);
    OrderedJson json;
    json["definition"] = definition.name;
    json["workload"] = std::move(line->json);
    json["solution"] = solution;
    json["evaluation"] = std::move(evaluation);
    line->json = std::move(json);
    return line;
}

} // namespace klineage::interop
