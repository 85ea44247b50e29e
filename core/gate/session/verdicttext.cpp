// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/verdicttext.h"

#include "core/base/numbertext.h"

#include <cmath>
#include <cstdio>

namespace klineage::gate {

namespace {

constexpr std::size_t maxLogBytes = std::size_t{256} << 10;

std::string capped(const std::string &log)
{
    return log.size() <= maxLogBytes ? log : log.substr(0, maxLogBytes) + "\n[the rest was cut]\n";
}

Verdict verdictOf(VerdictStatus status, Stage stage, const char *reason)
{
    Verdict verdict;
    verdict.status = status;
    verdict.stage = stage;
    verdict.reason = reason;
    return verdict;
}

/// "case odd, seed 123".
std::string placeOf(const Where &where)
{
    return "case " + where.caseName + ", seed " + std::to_string(where.seed);
}

void addPlace(Verdict &verdict, const Where &where)
{
    if (!where.caseName.empty()) {
        verdict.evidence.push_back({"case", where.caseName});
        if (!where.shape.empty())
            verdict.evidence.push_back({"shape", where.shape});
        verdict.evidence.push_back({"seed", std::to_string(where.seed)});
    }
}

std::string lineOf(const std::string &source, int number)
{
    std::size_t begin = 0;
    for (int line = 1; line < number; ++line) {
        begin = source.find('\n', begin);
        if (begin == std::string::npos)
            return {};
        ++begin;
    }
    const std::string text = source.substr(begin, source.find('\n', begin) - begin);
    const auto first = text.find_first_not_of(" \t");
    return first == std::string::npos ? std::string() : text.substr(first, 200);
}

Verdict redZoneVerdict(const Finding &finding, const Where &where)
{
    Verdict verdict = verdictOf(VerdictStatus::Unsafe, where.stage, "red_zone");
    const std::string side = finding.redZone.before ? "before the beginning" : "after the end";
    verdict.message = "The candidate wrote outside " + finding.buffer + ": "
                      + std::to_string(finding.redZone.changed) + " bytes " + side
                      + " of its memory changed (" + placeOf(where) + ").";
    verdict.evidence = {{"buffer", finding.buffer},
                        {"side", finding.redZone.before ? "before" : "after"},
                        {"distance_bytes", std::to_string(finding.redZone.distance)},
                        {"changed_bytes", std::to_string(finding.redZone.changed)}};
    verdict.hint =
        "Look for a store to " + finding.buffer + " whose index is not guarded at the edge of the shape.";
    addPlace(verdict, where);
    return verdict;
}

Verdict inputVerdict(const Finding &finding, const Where &where)
{
    Verdict verdict = verdictOf(VerdictStatus::Unsafe, where.stage, "input_changed");
    verdict.message = "The " + where.subject + " changed its input " + finding.buffer
                      + (finding.element.empty() ? "" : ", first at " + finding.element) + " ("
                      + placeOf(where) + ").";
    verdict.evidence = {{"buffer", finding.buffer}};
    if (!finding.element.empty())
        verdict.evidence.push_back({"element", finding.element});
    verdict.hint = "Inputs are read-only; put intermediate results in a [[workspace]].";
    addPlace(verdict, where);
    return verdict;
}

std::string mismatchHint(const OutputCheck &check)
{
    if (check.unwritten == check.mismatches && check.unwritten > 0)
        return "These elements were never written: check that the grid covers the whole shape, tails included.";
    if (check.unwritten > 0)
        return "Some of these elements were never written: check the tails of the grid first.";
    if (check.failure == OutputCheck::Failure::Selection)
        return "Each index is the column that the value at the same place came from, and none comes twice; the order within a row "
               "is free.";
    if (std::isnan(check.got))
        return "NaN comes from reading outside a tensor, from memory that was not initialised, or from an overflow.";
    if (check.mismatches > 0 && check.mismatches < check.elements / 20)
        return "Only a few elements differ: look at the edges of tiles and at shapes that are no multiple of them.";
    if (check.largestError < 0.05)
        return "The error is small but everywhere: look at the precision of the accumulation.";
    if (2 * check.mismatches > check.elements)
        return "Most elements are off: check the formula, its constants and the order of the arguments first, then the indices of loads and "
               "stores and barriers between writing and reading shared data.";
    return "Look at the indices of loads and stores, and for a missing barrier between writing and reading shared data.";
}

/// Six digits hide what is wrong where only the last bit is.
std::string elementNumber(double value, bool exact)
{
    return significantText(value, exact ? 9 : 6);
}

Verdict mismatchVerdict(const Finding &finding, const Where &where)
{
    const OutputCheck &check = finding.check;
    const bool exact = finding.tolerance.exact;
    Verdict verdict;
    verdict.status = VerdictStatus::Wrong;
    verdict.stage = where.stage;
    verdict.evidence = {{"element", finding.element},
                        {"expected", elementNumber(check.expected, exact)},
                        {"got", elementNumber(check.got, exact)},
                        {"elements", std::to_string(check.elements)},
                        {"mismatches", std::to_string(check.mismatches)},
                        {"relative_l2", significantText(check.relativeL2, 6)},
                        {"largest_error_in_rms", significantText(check.largestError, 6)}};
    switch (check.failure) {
    case OutputCheck::Failure::RelativeL2:
        verdict.reason = "rel_l2";
        verdict.message = "The output " + finding.buffer + " is too far from the oracle: relative L2 error "
                          + significantText(check.relativeL2, 6) + ", allowed is "
                          + significantText(finding.tolerance.relL2, 6) + " (" + placeOf(where) + ").";
        break;
    case OutputCheck::Failure::BeforeRounding:
        verdict.reason = "before_rounding";
        verdict.evidence.push_back({"before_rounding", significantText(check.beforeRounding, 6)});
        verdict.message = "Sums of " + finding.buffer + " lose too many bits: before results were rounded to "
                          + "their type, their relative L2 error was "
                          + significantText(check.beforeRounding, 3) + ", allowed is "
                          + significantText(finding.tolerance.beforeRounding, 3) + " (" + placeOf(where)
                          + ").";
        break;
    case OutputCheck::Failure::RowSum:
        verdict.reason = "row_sum";
        verdict.message = "The row of " + finding.buffer + " that begins at " + finding.element + " sums to "
                          + significantText(check.got, 6) + " instead of 1 (" + placeOf(where) + ").";
        break;
    case OutputCheck::Failure::Selection:
        verdict.reason = "selection";
        verdict.evidence = {{"element", finding.element},
                            {"got", elementNumber(check.got, true)},
                            {"elements", std::to_string(check.elements)},
                            {"mismatches", std::to_string(check.mismatches)}};
        verdict.message = finding.element + " is " + elementNumber(check.got, true) + ", " + check.why + "; "
                          + std::to_string(check.mismatches) + " of " + std::to_string(check.elements)
                          + " elements are wrong (" + placeOf(where) + ").";
        break;
    default:
        verdict.reason = "mismatch";
        verdict.message =
            finding.element + " is " + elementNumber(check.got, exact) + ", expected "
            + elementNumber(check.expected, exact) + "; " + std::to_string(check.mismatches) + " of "
            + std::to_string(check.elements)
            + (exact ? " elements differ in a case that is exact (" : " elements are outside the tolerance (")
            + placeOf(where) + ").";
    }
    if (check.unwritten > 0)
        verdict.evidence.push_back({"never_written", std::to_string(check.unwritten)});
    if (where.stage == Stage::Profile)
        verdict.evidence.push_back({"when", "in a timed run"});
    verdict.hint = mismatchHint(check);
    if (exact && check.relativeL2 < 0.01)
        verdict.hint =
            "Sums of these whole numbers are exact in the declared precision, in any order: look for inputs or sums that "
            "lose bits.";
    addPlace(verdict, where);
    return verdict;
}

std::string activityOf(const Where &where)
{
    switch (where.stage) {
    case Stage::Compile:
        return "compiling the " + where.subject;
    case Stage::Profile:
        return "timing the " + where.subject;
    default:
        break;
    }
    return "running the " + where.subject + " on " + placeOf(where);
}

Verdict timeoutVerdict(const WorkerFailure &failure, const Where &where)
{
    Verdict verdict = verdictOf(VerdictStatus::Timeout, where.stage, "deadline");
    verdict.message = failure.limitSeconds > 0
                          ? "The worker did not finish " + activityOf(where) + " within "
                                + significantText(failure.limitSeconds, 6) + " s and was killed."
                          : "The trial's time was used up before " + activityOf(where) + ".";
    verdict.evidence = {{"limit_s", significantText(failure.limitSeconds, 6)}};
    verdict.hint = where.stage == Stage::Compile
                       ? "Look for unrolling or templates that explode."
                       : "Look for a loop that never ends, or a barrier that some threads never reach.";
    verdict.log = capped(failure.output);
    addPlace(verdict, where);
    return verdict;
}

Verdict crashVerdict(const WorkerFailure &failure, const Where &where)
{
    Verdict verdict;
    verdict.status = VerdictStatus::Crash;
    verdict.stage = where.stage;
    verdict.log = capped(failure.output);
    switch (failure.kind) {
    case FailureKind::Died:
        verdict.reason = failure.exit && failure.exit->signal == 0 ? "exit" : "signal";
        verdict.message = "The worker died while " + activityOf(where) + ": "
                          + (failure.exit ? failure.exit->describe() : std::string("its end is not known"))
                          + ".";
        verdict.hint =
            where.stage == Stage::Profile
                ? "Its results were right. Look for an index outside a tensor, and for a write to an input: on a "
                  "processor nobody can write there while kernels are timed."
                : "Look for an index outside a tensor, a division by zero, or too much local or private memory.";
        break;
    case FailureKind::Protocol:
        verdict.reason = "protocol";
        verdict.message =
            "The worker broke its protocol while " + activityOf(where) + ": " + failure.error.message;
        verdict.hint = "The candidate has probably written over the worker's memory: look for wild stores.";
        break;
    default:
        verdict.reason = "device_error";
        verdict.message = "The device failed while " + activityOf(where) + ": " + failure.error.message;
        verdict.hint =
            "Look for an illegal address, a misaligned access, a trap, or more resources than a launch may have.";
    }
    verdict.evidence = {{"detail", failure.error.message}};
    addPlace(verdict, where);
    return verdict;
}

} // namespace

std::string shapeText(const workload::Case &c)
{
    std::string text;
    for (const auto &[axis, extent] : c.axes)
        text += (text.empty() ? "" : ", ") + axis + " = " + std::to_string(extent);
    return text;
}

LogError firstError(const std::string &log, const std::string &name)
{
    LogError found;
    for (std::size_t begin = 0; begin < log.size();) {
        const std::size_t end = std::min(log.find('\n', begin), log.size());
        const std::string line = log.substr(begin, end - begin);
        begin = end + 1;
        const std::size_t word = line.find("error");
        if (word == std::string::npos)
            continue;
        if (found.text.empty())
            found.text = line;
        // "K03.cl:12:5: error: …" and "K03.cu(12): error: …"
        const std::size_t place = line.find(name);
        if (name.empty() || place == std::string::npos || place > word)
            continue;
        const int number = std::atoi(line.c_str() + std::min(line.size(), place + name.size() + 1));
        if (number > 0)
            return {number, line.substr(word)};
    }
    return found;
}

Verdict planVerdict(const Error &error)
{
    Verdict verdict = verdictOf(VerdictStatus::CompileError, Stage::Compile, "bad_plan");
    verdict.message = "The launch plan cannot be used: " + error.message;
    verdict.hint =
        "The plan is the TOML in the comment that opens the file; its format is described in core/kernel/README.md.";
    verdict.log = error.detail;
    return verdict;
}

/// NVRTC and clang, of an #include that they cannot or may not open.
static bool missesFile(const std::string &message)
{
    for (const char *words : {"open source file", "file not found", "cannot open file"}) {
        if (message.find(words) != std::string::npos)
            return true;
    }
    return false;
}

Verdict compileVerdict(const CompileOutput &output, const Error &error, const std::string &name,
                       const kernel::Candidate &candidate)
{
    Verdict verdict = verdictOf(VerdictStatus::CompileError, Stage::Compile, "compile_error");
    verdict.log = capped(output.log);
    const LogError first = firstError(output.log, name);
    if (first.line > 0) {
        verdict.message =
            "The candidate does not compile: line " + std::to_string(first.line) + ": " + first.text;
        verdict.evidence = {{"line", std::to_string(first.line)},
                            {"source", lineOf(candidate.source, first.line)},
                            {"error", first.text}};
    } else {
        verdict.message =
            "The candidate does not compile: " + (first.text.empty() ? error.message : first.text);
    }
    verdict.evidence.push_back({"compiler", output.compiler});
    verdict.hint = "The log has every message of the compiler; its line numbers are those of the file.";
    if (missesFile(verdict.message))
        verdict.hint = candidate.surface->includes;
    return verdict;
}

Verdict launchVerdict(const Error &error, const Where &where)
{
    Verdict verdict = verdictOf(VerdictStatus::CompileError, Stage::Compile, "bad_launch");
    verdict.message = "The launch plan does not fit the kernels or the device: " + error.message;
    verdict.hint =
        "Compare the plan's args, grid and block with the kernel's parameters and the device's limits.";
    addPlace(verdict, where);
    return verdict;
}

Verdict globalVerdict(const std::string &name, bool changed, const Where &where)
{
    Verdict verdict = verdictOf(VerdictStatus::Unsafe, where.stage, "global_changed");
    verdict.message = changed ? "The candidate wrote to its module's variable " + name
                                    + ", which lives from launch to launch."
                              : "The candidate's module has a variable " + name + " that cannot be watched.";
    verdict.evidence = {{"variable", name}};
    verdict.hint = "Put intermediate results in a [[workspace]], and tables in __constant__ memory.";
    addPlace(verdict, where);
    return verdict;
}

Verdict replayVerdict(double replayedNs, double launchedNs, const Where &where)
{
    Verdict verdict = verdictOf(VerdictStatus::Suspect, Stage::Profile, "replay");
    verdict.message =
        "A run takes " + durationText(replayedNs, 3) + " in a replayed graph and "
        + durationText(launchedNs, 3)
        + " when it is launched by itself: they differ by more than 5 % and more than launching explains.";
    verdict.evidence = {{"replayed", durationText(replayedNs, 3)}, {"launched", durationText(launchedNs, 3)}};
    verdict.hint =
        "Launches must not depend on each other: look for work that one launch leaves to the next.";
    addPlace(verdict, where);
    return verdict;
}

Verdict clockVerdict(double claimedNs, double elapsedNs, const Where &where)
{
    Verdict verdict = verdictOf(VerdictStatus::Suspect, Stage::Profile, "clock");
    verdict.message = "The worker says that its runs took " + durationText(claimedNs, 3)
                      + ", but the supervisor waited " + durationText(elapsedNs, 3)
                      + " for them: the times cannot be trusted.";
    verdict.evidence = {{"claimed", durationText(claimedNs, 3)}, {"elapsed", durationText(elapsedNs, 3)}};
    verdict.hint =
        "A kernel must not touch the clock of its process. When it does not, try again on a quieter machine.";
    addPlace(verdict, where);
    return verdict;
}

Verdict timedOutputVerdict(const TimedFault &fault, const Where &where)
{
    Verdict verdict;
    verdict.status = VerdictStatus::Wrong;
    verdict.stage = Stage::Profile;
    verdict.reason = "timed_output";
    verdict.message = "A timed launch of the " + where.subject + " left " + fault.output + " wrong: of "
                      + fault.from + " to " + fault.to + " " + fault.what + " (case " + where.caseName + ").";
    verdict.evidence = {{"output", fault.output},
                        {"from", fault.from},
                        {"to", fault.to},
                        {"launch_in_sample", std::to_string(fault.launch + 1)},
                        {"buffer_set", std::to_string(fault.set)}};
    verdict.hint =
        fault.unwritten
            ? "Every launch has to write all of its outputs: look for work that depends on the launches before, on the "
              "content, or on chance."
            : "It was right when it was checked: look for a race, for what is kept from launch to launch, or for content that "
              "the checked cases do not have.";
    addPlace(verdict, where);
    return verdict;
}

Verdict aheadVerdict(const TimedFault &fault, const Where &where)
{
    Verdict verdict;
    verdict.status = VerdictStatus::Wrong;
    verdict.stage = Stage::Profile;
    verdict.reason = "work_ahead";
    verdict.message = "A timed launch of the " + where.subject + " wrote into " + fault.output
                      + " of buffers that belong to a later launch (case " + where.caseName + ").";
    verdict.evidence = {{"buffer", fault.output},
                        {"launch_in_sample", std::to_string(fault.launch + 1)},
                        {"buffer_set", std::to_string(fault.set)}};
    verdict.hint = "A launch may only write to the buffers that it is given.";
    addPlace(verdict, where);
    return verdict;
}

Verdict strayVerdict(const std::string &what, const Where &where)
{
    Verdict verdict = verdictOf(VerdictStatus::Unsafe, Stage::Profile, "stray_write");
    verdict.message = "Timed launches of the " + where.subject + " wrote into " + what
                      + ", which they were not given (case " + where.caseName + ").";
    verdict.evidence = {{"buffer", what}};
    verdict.hint = "A launch may only write to the buffers that it is given.";
    addPlace(verdict, where);
    return verdict;
}

Verdict findingVerdict(const Finding &finding, const Where &where)
{
    switch (finding.kind) {
    case Finding::Kind::RedZone:
        return redZoneVerdict(finding, where);
    case Finding::Kind::InputChanged:
        return inputVerdict(finding, where);
    case Finding::Kind::Mismatch:
        break;
    }
    return mismatchVerdict(finding, where);
}

TrialEnd failureEnd(const WorkerFailure &failure, const Where &where)
{
    switch (failure.kind) {
    case FailureKind::Timeout:
        return timeoutVerdict(failure, where);
    case FailureKind::Cancelled:
        return Error{ErrorCode::Cancelled, "The trial was cancelled.", {}};
    case FailureKind::Unavailable:
    case FailureKind::Killed:
        return failure.error;
    default:
        break;
    }
    return crashVerdict(failure, where);
}

TrialEnd environmentEnd(const WorkerFailure &failure)
{
    if (failure.kind == FailureKind::Timeout)
        return Error{ErrorCode::Timeout,
                     failure.limitSeconds > 0 ? "The worker did not answer within "
                                                    + significantText(failure.limitSeconds, 6) + " s."
                                              : "The trial's time was used up before the worker was asked.",
                     failure.output};
    if (failure.kind == FailureKind::Cancelled)
        return Error{ErrorCode::Cancelled, "The trial was cancelled.", {}};
    Error error = failure.error;
    if (failure.exit)
        error.message += " The worker ended with " + failure.exit->describe() + ".";
    error.detail += failure.output;
    return error;
}

} // namespace klineage::gate
