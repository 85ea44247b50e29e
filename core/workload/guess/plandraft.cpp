// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workload/guess/plandraft.h"

#include "core/base/identifier.h"
#include "core/base/suggest.h"
#include "core/files/tomlwriter.h"
#include "core/workload/guess/guess.h"

#include <algorithm>
#include <charconv>

namespace klineage::workload {

namespace {

std::string trimmed(std::string_view text)
{
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos)
        return {};
    return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

/// What a device would say where none is asked: only the plan's form is judged, so a limit that nobody knows is none.
kernel::Bindings assumedFacts(kernel::Surface surface)
{
    constexpr std::int64_t unknownShared = std::int64_t{1} << 40;
    return {{"sm_count", std::int64_t{1}},
            {"warp_size", std::int64_t{surface.device().warpSize}},
            {"max_shared", unknownShared}};
}

class DraftCheck
{
public:
    DraftCheck(const PlanDraft &draft, const Workload &workload)
        : m_draft(draft)
        , m_workload(workload)
    {}

    std::vector<FieldProblem> run()
    {
        checkTunables();
        checkKernel();
        checkDimensions("grid", m_draft.grid);
        checkDimensions("block", m_draft.block);
        if (!m_draft.shared.empty())
            checkExpression("shared", m_draft.shared);
        if (m_problems.empty()) {
            const std::string extension = m_draft.surface.language().extension;
            m_problems = checkCandidateText(candidateText(m_draft), "K00" + extension, m_workload);
        }
        return std::move(m_problems);
    }

private:
    void add(const std::string &field, const std::string &message) { m_problems.push_back({field, message}); }

    void checkTunables()
    {
        for (const kernel::Tunable &tunable : m_draft.tunables) {
            const auto &values = tunable.values;
            if (std::find(values.begin(), values.end(), tunable.defaultValue) == values.end())
                add("tunables", tunable.name + " is " + std::to_string(tunable.defaultValue)
                                    + " in the code, which has to be one of its values.");
            if (m_workload.bindings(m_workload.cases.front()).contains(tunable.name))
                add("tunables", tunable.name + " is an axis of the workload and cannot be a tunable too.");
        }
    }

    void checkExpression(const std::string &field, const std::string &text)
    {
        const Result<kernel::Expression> parsed = kernel::Expression::parse(text);
        if (!parsed) {
            add(field, parsed.error().message);
            return;
        }
        kernel::Bindings known = assumedFacts(m_draft.surface);
        known.merge(m_workload.bindings(m_workload.cases.front()));
        for (const kernel::Tunable &tunable : m_draft.tunables)
            known[tunable.name] = tunable.defaultValue;
        std::vector<std::string> names;
        for (const auto &[name, value] : known)
            names.push_back(name);
        for (const std::string &name : parsed->names()) {
            if (!known.contains(name))
                add(field, "There is no axis, tunable or fact of the device called '" + name + "'"
                               + (didYouMean(name, names).empty() ? "; there are " + quotedList(names) + '.'
                                                                  : didYouMean(name, names)));
        }
    }

    void checkDimensions(const std::string &field, const std::vector<std::string> &dimensions)
    {
        if (dimensions.empty() || dimensions.size() > 3)
            add(field, "Say 1 to 3 expressions, x first, with commas between them.");
        for (const std::string &dimension : dimensions)
            checkExpression(field, dimension);
    }

    void checkKernel()
    {
        const kernel::SourceOutline outline = kernel::outlineSource(m_draft.code, m_draft.surface);
        const auto found = std::find_if(outline.kernels.begin(), outline.kernels.end(),
                                        [this](const auto &k) { return k.name == m_draft.kernel; });
        if (!isIdentifier(m_draft.kernel)) {
            const kernel::Dialect *dialect = m_draft.surface->dialect;
            add("kernel", !outline.kernels.empty() ? "Say which kernel is launched."
                          : !dialect ? "The code is not looked into: say which kernel is launched."
                                     : "The code has no kernel: a function with "
                                           + std::string(dialect->declaration) + ".");
            return;
        }
        if (found == outline.kernels.end()) {
            // A macro may make its name: the compiler knows.
            for (std::size_t i = 0; i < m_draft.args.size(); ++i) {
                if (m_draft.args[i].empty())
                    add("arg:" + std::to_string(i), "Say what is passed.");
            }
            return;
        }
        if (!found->problem.empty())
            add("kernel", found->problem);
        if (found->parameters.size() != m_draft.args.size()) {
            add("kernel", m_draft.kernel + " takes " + std::to_string(found->parameters.size())
                              + " arguments, and the plan passes " + std::to_string(m_draft.args.size())
                              + '.');
            return;
        }
        for (std::size_t i = 0; i < m_draft.args.size(); ++i) {
            const std::string why =
                argumentProblem(found->parameters[i], m_draft.args[i], m_workload, m_draft.tunables);
            if (!why.empty())
                add("arg:" + std::to_string(i), why);
        }
    }

    const PlanDraft &m_draft;
    const Workload &m_workload;
    std::vector<FieldProblem> m_problems;
};

} // namespace

std::vector<std::string> splitList(std::string_view text)
{
    std::vector<std::string> parts;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && (text[i] == '(' || text[i] == ')'))
            depth += text[i] == '(' ? 1 : -1;
        if (i < text.size() && (text[i] != ',' || depth > 0))
            continue;
        parts.push_back(trimmed(text.substr(begin, i - begin)));
        begin = i + 1;
    }
    if (parts.size() == 1 && parts[0].empty())
        parts.clear();
    return parts;
}

std::string joinList(const std::vector<std::string> &parts)
{
    std::string text;
    for (const std::string &part : parts)
        text += (text.empty() ? "" : ", ") + part;
    return text;
}

std::string candidateText(const PlanDraft &draft)
{
    files::TomlWriter writer;
    writer.string("surface", kernel::toString(draft.surface));
    kernel::writeTunables(writer, draft.tunables);
    writer.beginArrayTable("launch");
    writer.string("kernel", draft.kernel);
    writer.expressions("grid", draft.grid);
    writer.expressions("block", draft.block);
    if (!draft.shared.empty())
        writer.expression("shared", draft.shared);
    writer.strings("args", draft.args);
    std::set<std::string> names;
    for (const kernel::Tunable &tunable : draft.tunables)
        names.insert(tunable.name);
    return kernel::joinCandidate(draft.surface, writer.text(),
                                 kernel::withTunables(draft.code, names, draft.surface));
}

std::optional<PlanDraft> draftOf(const kernel::Candidate &candidate)
{
    if (candidate.launches.size() != 1 || !candidate.workspaces.empty() || !candidate.tensorMaps.empty())
        return std::nullopt;
    const kernel::Launch &launch = candidate.launches.front();
    if (candidate.surface->compilerDecides || launch.when || !launch.cluster.empty() || launch.cooperative
        || launch.programmaticDependent)
        return std::nullopt;
    PlanDraft draft;
    draft.surface = candidate.surface;
    draft.code = kernel::codeOf(candidate);
    draft.tunables = candidate.tunables;
    draft.kernel = launch.kernel;
    for (const kernel::Expression &expression : launch.grid)
        draft.grid.push_back(expression.text());
    for (const kernel::Expression &expression : launch.block)
        draft.block.push_back(expression.text());
    if (launch.sharedBytes != kernel::Expression())
        draft.shared = launch.sharedBytes.text();
    draft.args = kernel::argumentTexts(launch);
    return draft;
}

std::vector<FieldProblem> checkDraft(const PlanDraft &draft, const Workload &workload)
{
    return DraftCheck(draft, workload).run();
}

std::vector<FieldProblem> checkCandidateText(std::string_view text, const std::string &fileName,
                                             const Workload &workload)
{
    const Result<kernel::Candidate> candidate = kernel::parseCandidate(text, fileName);
    if (!candidate)
        return {{"", candidate.error().message}};
    for (const Case &c : workload.cases) {
        const Result<std::vector<kernel::ResolvedBuffer>> buffers = workload.buffersOf(c);
        if (!buffers)
            return {{"", buffers.error().message}};
        kernel::Bindings bindings = workload.bindings(c);
        bindings.merge(candidate->defaultTunables());
        bindings.merge(assumedFacts(candidate->surface));
        if (const auto plan = kernel::resolvePlan(*candidate, *buffers, bindings); !plan)
            return {{"", "In the case '" + c.name + "': " + plan.error().message}};
    }
    return {};
}

} // namespace klineage::workload
