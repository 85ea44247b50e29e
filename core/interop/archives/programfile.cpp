// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/archives/programfile.h"

#include "core/kernel/candidate.h"
#include "core/workload/guess/guess.h"

#include <algorithm>

namespace klineage::interop {

namespace {

/// Whether a line of the code begins so, blanks before it left aside.
bool hasLine(std::string_view code, std::string_view begin)
{
    for (std::size_t at = code.find(begin); at != std::string_view::npos; at = code.find(begin, at + 1)) {
        const std::size_t before = at == 0 ? std::string_view::npos : code.find_last_not_of(" \t", at - 1);
        if (before == std::string_view::npos || code[before] == '\n')
            return true;
    }
    return false;
}

bool importsModule(std::string_view code, const std::string &module)
{
    for (const char *word : {"import ", "from "}) {
        for (const char *end : {"\n", "\r", ".", " "}) {
            if (hasLine(code, word + module + end))
                return true;
        }
    }
    return false;
}

bool isPython(std::string_view code)
{
    return hasLine(code, "import ") || hasLine(code, "from ") || hasLine(code, "def ");
}

ProgramFile asItIs(const std::string &code, ProgramFile::Plan plan, std::string why)
{
    return {code, plan, std::move(why), false};
}

} // namespace

std::optional<kernel::Surface> surfaceOf(const ArchivedProgram &program)
{
    const std::string &code = program.code;
    if (kernel::planCommentOf(code)) {
        if (const auto candidate = kernel::parseCandidate(code, program.source))
            return candidate->surface;
    }
    for (const kernel::Surface surface : kernel::allSurfaces()) {
        if (!surface->dialect && importsModule(code, surface.language().word))
            return surface;
    }
    if (!isPython(code)) {
        for (const kernel::Surface surface : kernel::allSurfaces()) {
            const kernel::Dialect *dialect = surface->dialect;
            if (!dialect)
                continue;
            const std::string shortBegin = std::string(dialect->shortWord) + " void ";
            if (code.find(dialect->kernelWord) != std::string::npos
                || (!dialect->shortWord.empty() && hasLine(code, shortBegin)))
                return surface;
        }
    }
    std::string language = program.language;
    std::transform(language.begin(), language.end(), language.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return kernel::surfaceFromString(language);
}

ProgramFile programFile(const std::string &code, kernel::Surface surface, const workload::Workload &workload)
{
    using Plan = ProgramFile::Plan;
    if (kernel::planCommentOf(code)) {
        const auto candidate = kernel::parseCandidate(code, "it");
        return asItIs(code, candidate ? Plan::Own : Plan::Unreadable,
                      candidate ? std::string() : candidate.error().message);
    }
    if (!surface->dialect)
        return asItIs(code, Plan::Missing,
                      std::string("No plan can be proposed for ") + surface.language().name + '.');
    const kernel::DeviceSource device = kernel::deviceSourceOf(code, surface);
    const kernel::SourceOutline outline = kernel::outlineSource(device.code, surface);
    const kernel::KernelFunction *chosen = workload::likelyKernel(outline, device.launches);
    if (!chosen)
        return asItIs(code, Plan::Missing, "It has no kernel function.");
    const workload::PlanGuess guess =
        workload::guessPlan(device.code, surface, *chosen, workload, device.launches);
    if (const auto problems = workload::checkDraft(guess.draft, workload); !problems.empty())
        return asItIs(code, Plan::Missing, problems.front().message);
    ProgramFile file{workload::candidateText(guess.draft), Plan::Proposed, {}, device.isChanged()};
    if (file.text.size() > kernel::maxCandidateBytes)
        return asItIs(code, Plan::Missing, "With a plan it is longer than 4 MiB.");
    return file;
}

} // namespace klineage::interop
