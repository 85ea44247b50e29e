// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/editor/diagnostics.h"

#include "core/kernel/plan.h"

#include <QCoreApplication>
#include <QRegularExpression>

namespace klineage::ui {

namespace {

QString diagnosticsText(const char *text)
{
    return QCoreApplication::translate("PlanCheck", text);
}

QString extent(const std::array<std::int64_t, 3> &dims)
{
    QStringList parts{QString::number(dims[0])};
    if (dims[1] != 1 || dims[2] != 1)
        parts << QString::number(dims[1]);
    if (dims[2] != 1)
        parts << QString::number(dims[2]);
    return parts.join(QStringLiteral(" × "));
}

QString summaryOf(const kernel::ResolvedPlan &plan)
{
    QStringList launches;
    for (const kernel::ResolvedLaunch &launch : plan.launches)
        launches << diagnosticsText("%1: %2 blocks of %3")
                        .arg(QString::fromStdString(launch.kernel), extent(launch.grid),
                             extent(launch.block));
    constexpr int shown = 3;
    const qsizetype more = launches.size() - shown;
    QString text = launches.mid(0, shown).join(QStringLiteral(" · "));
    if (more > 0)
        text += QStringLiteral(" · ") + diagnosticsText("%1 more").arg(more);
    return text;
}

Result<kernel::ResolvedPlan> resolve(const kernel::Candidate &candidate, const workload::Workload &workload,
                                     const kernel::Bindings &facts)
{
    const workload::Case &timed = workload.cases.front();
    std::vector<kernel::ResolvedBuffer> tensors;
    for (const workload::Tensor &tensor : workload.tensors) {
        auto shape = workload.shapeOf(tensor, timed);
        if (!shape)
            return tl::unexpected(shape.error());
        tensors.push_back({tensor.name, tensor.dtype, std::move(*shape), {}});
    }
    // A limit that nobody has recorded is the gate's to find: it is no error of the plan.
    constexpr std::int64_t unknownShared = std::int64_t{1} << 40;
    kernel::Bindings bindings = workload.bindings(timed);
    bindings.merge(candidate.defaultTunables());
    bindings.merge(kernel::Bindings(facts));
    bindings.merge(kernel::Bindings{{"sm_count", std::int64_t{1}},
                                    {"warp_size", candidate.surface.device().warpSize},
                                    {"max_shared", unknownShared}});
    return kernel::resolvePlan(candidate, tensors, bindings);
}

} // namespace

std::int64_t sharedLimitOf(std::string_view platform)
{
    // Maximum shared memory a block may opt in to: CUDA C++ Programming Guide, table of compute capabilities.
    constexpr std::pair<std::string_view, int> limits[] = {{"sm70", 96},  {"sm75", 64},   {"sm80", 163},
                                                           {"sm86", 99},  {"sm87", 163},  {"sm89", 99},
                                                           {"sm90", 227}, {"sm100", 227}, {"sm120", 99}};
    for (const auto &[name, kib] : limits) {
        if (platform == name)
            return std::int64_t{kib} << 10;
    }
    return 0;
}

PlanCheck checkCandidate(std::string_view text, const std::string &fileName,
                         const workload::Workload *workload, const kernel::Bindings &facts)
{
    PlanCheck check;
    const Result<kernel::Candidate> candidate = kernel::parseCandidate(text, fileName);
    if (!candidate) {
        check.diagnostics.push_back(diagnosticFromMessage(QString::fromStdString(candidate.error().message)));
        return check;
    }
    if (!workload || workload->cases.empty())
        return check;
    const Result<kernel::ResolvedPlan> plan = resolve(*candidate, *workload, facts);
    if (plan) {
        check.summary = summaryOf(*plan);
        return check;
    }
    Diagnostic diagnostic = diagnosticFromMessage(QString::fromStdString(plan.error().message));
    if (diagnostic.line == 0 && candidate->launches.size() == 1)
        diagnostic.line = candidate->launches.front().line;
    check.diagnostics.push_back(diagnostic);
    return check;
}

Diagnostic diagnosticFromMessage(const QString &message)
{
    static const QRegularExpression position(QStringLiteral("^[^:\\n]*:(\\d+):(\\d+): (.*)$"),
                                             QRegularExpression::DotMatchesEverythingOption);
    const auto match = position.match(message);
    Diagnostic diagnostic;
    diagnostic.message = match.hasMatch() ? match.captured(3) : message;
    if (match.hasMatch()) {
        diagnostic.line = match.capturedView(1).toInt();
        diagnostic.column = match.capturedView(2).toInt();
    }
    return diagnostic;
}

std::vector<Diagnostic> diagnosticsFromLog(const QString &log)
{
    static const QRegularExpression nvrtc(
        QStringLiteral("^[^\\n(]*\\((\\d+)\\): ?(?:catastrophic )?(error|warning)(?: #[-\\w]+)?:? (.*)$"));
    static const QRegularExpression clang(
        QStringLiteral("^[^\\n]*?:(\\d+):(\\d+): (?:fatal )?(error|warning): (.*)$"));
    constexpr std::size_t most = 200;
    std::vector<Diagnostic> found;
    for (const QString &line : log.split(u'\n')) {
        if (found.size() == most)
            break;
        Diagnostic diagnostic;
        if (const auto match = clang.match(line); match.hasMatch()) {
            diagnostic.line = match.capturedView(1).toInt();
            diagnostic.column = match.capturedView(2).toInt();
            diagnostic.severity = match.capturedView(3) == u"error" ? Diagnostic::Severity::Error
                                                                    : Diagnostic::Severity::Warning;
            diagnostic.message = match.captured(4).trimmed();
        } else if (const auto other = nvrtc.match(line); other.hasMatch()) {
            diagnostic.line = other.capturedView(1).toInt();
            diagnostic.severity = other.capturedView(2) == u"error" ? Diagnostic::Severity::Error
                                                                    : Diagnostic::Severity::Warning;
            diagnostic.message = other.captured(3).trimmed();
        } else {
            continue;
        }
        found.push_back(std::move(diagnostic));
    }
    return found;
}

} // namespace klineage::ui
