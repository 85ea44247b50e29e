// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/sandbox.h"
#include "core/gate/supervisor/sourcecheck.h"
#include "core/gate/supervisor/sourcetext.h"
#include "core/gate/supervisor/trialcontext.h"
#include "core/gate/supervisor/turn.h"
#include "core/gate/triton/launches.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace klineage::gate {

namespace {

std::string replaceAll(std::string text, const std::string &what, const std::string &with)
{
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
        text.replace(at, what.size(), with);
    return text;
}

std::string listOf(const std::vector<std::int64_t> &values)
{
    std::string text;
    for (const auto value : values)
        text += (text.empty() ? "" : ", ") + std::to_string(value);
    return text;
}

std::int64_t bytesOf(const std::vector<kernel::ResolvedBuffer> &buffers)
{
    std::int64_t bytes = 0;
    for (const kernel::ResolvedBuffer &buffer : buffers)
        bytes += buffer.bytes();
    return bytes;
}

/// What one set of a plan's buffers may take: half of the device, and a quarter of the machine, because the gate composes and
/// inspects every buffer in its own memory.
std::int64_t memoryLimit(const WorkerSession &session)
{
    auto limit = static_cast<std::int64_t>(physicalMemory() / 4);
    const auto &facts = session.helloEnvironment().facts;
    if (const auto device = facts.find("memory_bytes"); device != facts.end()) {
        const std::int64_t bytes = std::atoll(device->second.c_str());
        if (bytes > 0)
            limit = std::min(limit, bytes / 2);
    }
    return limit;
}

std::string mebibytes(std::int64_t bytes)
{
    return std::to_string(bytes >> 20) + " MiB";
}

/// The verdict on a plan that needs more memory than a candidate may have.
std::optional<Verdict> tooLarge(const kernel::ResolvedPlan &plan,
                                const std::vector<kernel::ResolvedBuffer> &tensors,
                                const TrialContext &context)
{
    const std::int64_t workspaces = bytesOf(plan.workspaces);
    const std::int64_t limit = memoryLimit(context.session);
    if (workspaces == 0 || workspaces + bytesOf(tensors) <= limit)
        return std::nullopt;
    Verdict verdict =
        planVerdict({ErrorCode::InvalidInput,
                     "The plan's workspaces need " + mebibytes(workspaces) + " besides the tensors' "
                         + mebibytes(bytesOf(tensors)) + ": more than a candidate may have here, which is "
                         + mebibytes(limit) + ".",
                     {}});
    verdict.reason = "too_much_memory";
    verdict.hint = "Reuse a smaller workspace, or work in pieces.";
    return verdict;
}

/// How a compiler ended that had no more address space to grow into: of its own accord, as programs do that get no memory.
TrialEnd compilerEnd(const WorkerFailure &failure, const Where &where)
{
    TrialEnd end = failureEnd(failure, where);
    auto *verdict = std::get_if<Verdict>(&end);
    const auto says = [&failure](const char *words) {
        return failure.output.find(words) != std::string::npos;
    };
    if (!verdict || failure.kind != FailureKind::Died
        || !(says("out of memory") || says("bad_alloc") || says("memory exhausted")
             || says("llocation failed") || says("MemoryError")))
        return end;
    const auto limit = static_cast<std::int64_t>(compileMemoryBytes);
    verdict->status = VerdictStatus::CompileError;
    verdict->reason = "too_much_memory";
    verdict->message = "Compiling the " + where.subject + " needs more memory than the " + mebibytes(limit)
                       + " that it may take.";
    verdict->evidence.insert(verdict->evidence.begin(), {"limit", mebibytes(limit)});
    verdict->hint = "Look for tables, templates, macros or unrolling that explode.";
    return end;
}

/// What no compiler is asked about: source that asks for more than a candidate may have.
std::optional<Verdict> refusedSource(const PreparedCandidate &prepared)
{
    const auto refused = prepared.candidate.surface->compiledApart
                             ? refusedInCuda(prepared.candidate.source)
                             : refusedInOpenCl(prepared.candidate.source, prepared.candidate.tunables);
    if (!refused)
        return std::nullopt;
    CompileOutput output;
    output.log = replaceAll(*refused, "<candidate>", prepared.name) + "\n";
    return compileVerdict(output, {ErrorCode::InvalidInput, "The source is refused.", {}}, prepared.name,
                          prepared.candidate);
}

tl::unexpected<TrialEnd> badOverride(const std::string &message)
{
    return tl::unexpected<TrialEnd>(Error{ErrorCode::InvalidInput, message, {}});
}

} // namespace

StageResult<PreparedCandidate> prepareCandidate(const std::string &label, const std::string &text,
                                                const std::string &name,
                                                const std::map<std::string, std::int64_t> &overrides,
                                                const workload::Workload *workload)
{
    auto candidate = kernel::parseCandidate(text, name.empty() ? label : name);
    if (!candidate)
        return tl::unexpected<TrialEnd>(planVerdict(candidate.error()));
    PreparedCandidate prepared{label, name.empty() ? label : name, std::move(*candidate), {}, {}};
    for (const kernel::Tunable &tunable : prepared.candidate.tunables)
        prepared.tunables[tunable.name] = tunable.defaultValue;
    for (const auto &[key, value] : overrides) {
        const auto &declared = prepared.candidate.tunables;
        const auto tunable = std::find_if(declared.begin(), declared.end(),
                                          [&key = key](const auto &t) { return t.name == key; });
        if (tunable == declared.end())
            return badOverride("Cannot set the tunable " + key + ": " + prepared.name
                               + " does not declare it.");
        if (std::find(tunable->values.begin(), tunable->values.end(), value) == tunable->values.end())
            return badOverride("Cannot set the tunable " + key + " to " + std::to_string(value) + ": "
                               + prepared.name + " allows " + listOf(tunable->values) + ".");
        prepared.tunables[key] = value;
    }
    if (workload && prepared.candidate.surface->compilerDecides) {
        auto launches = describeLaunches(prepared.candidate, *workload, prepared.tunables);
        if (!launches)
            return tl::unexpected<TrialEnd>(planVerdict(launches.error()));
        prepared.launches = std::move(*launches);
    }
    return prepared;
}

StageResult<void> compileCandidate(PreparedCandidate &prepared, CompilerSession &compiler,
                                   const std::string &target, double limitSeconds,
                                   const std::stop_token &stop)
{
    Where where;
    where.stage = Stage::Compile;
    where.subject = prepared.label;
    if (auto refused = prepared.candidate.surface->compilerDecides ? std::nullopt : refusedSource(prepared))
        return tl::unexpected<TrialEnd>(std::move(*refused));
    auto output = compiler.compile({kernel::toString(prepared.candidate.surface), prepared.candidate.source,
                                    prepared.name, prepared.tunables, target, prepared.launches},
                                   std::min(limitSeconds, compileLimitSeconds), stop);
    if (!output) {
        if (output.error().kind == FailureKind::Machine || output.error().kind == FailureKind::Killed)
            return tl::unexpected<TrialEnd>(output.error().error);
        return tl::unexpected(compilerEnd(output.error(), where));
    }
    prepared.compiled = std::move(*output);
    if (!prepared.compiled.ok)
        return tl::unexpected<TrialEnd>(
            compileVerdict(prepared.compiled, {}, prepared.name, prepared.candidate));
    auto globals = cuda::globalsOf(prepared.compiled.binary);
    if (!globals)
        return tl::unexpected<TrialEnd>(
            compileVerdict(prepared.compiled, globals.error(), prepared.name, prepared.candidate));
    prepared.globals = std::move(*globals);
    return {};
}

TrialEnd workerCompileEnd(const WorkerFailure &failure, const Where &where, const TrialContext &context)
{
    TrialEnd end = compilerEnd(failure, where);
    auto *verdict = std::get_if<Verdict>(&end);
    if (!verdict || verdict->status != VerdictStatus::Crash || !failure.exit || failure.exit->signal == 0)
        return end;
    const auto &facts = context.session.helloEnvironment().facts;
    const auto compiler = facts.find("compiler");
    verdict->status = VerdictStatus::CompileError;
    verdict->reason = "compiler_crash";
    verdict->message = "The compiler" + (compiler == facts.end() ? std::string() : " " + compiler->second)
                       + " itself crashed on the " + where.subject + ": " + failure.exit->describe() + ".";
    verdict->hint =
        "Nothing of the source ran. Write it in another way: a loop with an empty body is one reason.";
    return end;
}

StageResult<void> checkGlobals(const PreparedCandidate &prepared, ModuleId module,
                               const TrialContext &context, const Where &where)
{
    for (const cuda::DeviceGlobal &global : prepared.globals) {
        const auto now = context.session.readGlobal(module, global.name, global.initial.size());
        if (!now && now.error().kind != FailureKind::Candidate)
            return tl::unexpected(failureEnd(now.error(), where));
        if (!now || !global.unchanged(*now))
            return tl::unexpected<TrialEnd>(globalVerdict(global.name, now.has_value(), where));
    }
    return {};
}

std::optional<Verdict> compileRefusal(PreparedCandidate prepared, CompilerSession &compiler,
                                      const std::string &target, const std::stop_token &stop)
{
    auto compiled = compileCandidate(prepared, compiler, target, compileLimitSeconds, stop);
    auto *verdict = compiled ? nullptr : std::get_if<Verdict>(&compiled.error());
    return verdict && verdict->status == VerdictStatus::CompileError ? std::optional(std::move(*verdict))
                                                                     : std::nullopt;
}

std::optional<Verdict> compileRefusal(const PreparedCandidate &prepared, WorkerSession &worker)
{
    if (auto refused = refusedSource(prepared))
        return refused;
    auto loaded =
        worker.load({}, plainSource(prepared.candidate.source), prepared.tunables, compileLimitSeconds);
    if (!loaded || loaded->module)
        return std::nullopt;
    loaded->output.log = replaceAll(loaded->output.log, "<candidate>", prepared.name);
    return compileVerdict(loaded->output, loaded->error, prepared.name, prepared.candidate);
}

StageResult<ModuleId> loadCandidate(PreparedCandidate &prepared, const TrialContext &context)
{
    const bool apart = prepared.candidate.surface->compiledApart;
    if (auto refused = apart ? std::nullopt : refusedSource(prepared))
        return tl::unexpected<TrialEnd>(std::move(*refused));
    const std::string source = apart ? std::string() : plainSource(prepared.candidate.source);
    auto loaded =
        apart || !context.builder
            ? context.session.load(prepared.compiled.binary, source, prepared.tunables, compileLimitSeconds)
            : context.builder->load(context.session, source, prepared.tunables, compileLimitSeconds,
                                    context.stop, context.deadline);
    if (!loaded) {
        Where where;
        where.stage = Stage::Compile;
        where.subject = prepared.label;
        return tl::unexpected(apart ? compilerEnd(loaded.error(), where)
                                    : workerCompileEnd(loaded.error(), where, context));
    }
    loaded->output.log = replaceAll(loaded->output.log, "<candidate>", prepared.name);
    if (!loaded->module) {
        CompileOutput output = apart ? prepared.compiled : loaded->output;
        return tl::unexpected<TrialEnd>(
            compileVerdict(output, loaded->error, prepared.name, prepared.candidate));
    }
    if (!apart && !prepared.compiled.ok)
        prepared.compiled = std::move(loaded->output);
    return *loaded->module;
}

StageResult<kernel::ResolvedPlan> resolveFor(const PreparedCandidate &prepared, const TrialContext &context,
                                             const workload::Case &c)
{
    const auto tensors = context.job.workload.buffersOf(c);
    if (!tensors)
        return tl::unexpected<TrialEnd>(tensors.error());
    kernel::Bindings bindings = context.job.workload.bindings(c);
    for (const auto &[name, value] : prepared.tunables)
        bindings[name] = value;
    for (const auto &[name, value] : context.session.facts())
        bindings[name] = value;
    auto plan = kernel::resolvePlan(prepared.candidate, *tensors, bindings);
    if (plan && prepared.candidate.surface->compilerDecides) {
        if (auto applied = applyDecisions(prepared.compiled.launches, *tensors, bindings, *plan); !applied)
            plan = tl::unexpected(applied.error());
    }
    if (plan)
        plan->usesLocal = prepared.compiled.usesLocal;
    auto large = plan ? tooLarge(*plan, *tensors, context) : std::nullopt;
    if (plan && !large)
        return std::move(*plan);
    Verdict verdict = large ? std::move(*large) : planVerdict(plan.error());
    verdict.evidence.push_back({"case", c.name});
    return tl::unexpected<TrialEnd>(std::move(verdict));
}

} // namespace klineage::gate
