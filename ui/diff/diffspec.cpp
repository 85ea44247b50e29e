// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/diffspec.h"

#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/kernel/candidate.h"

#include <QCoreApplication>

#include <functional>

namespace klineage::ui {

namespace {

constexpr std::size_t largestFile = 64u << 20;

QString specText(const char *text)
{
    return QCoreApplication::translate("DiffSpec", text);
}

SideTextPtr readLog(const SideSpec &spec, const std::stop_token &stop)
{
    if (!spec.hasTrial)
        return makeSideMessage(
            specText(
                "%1 has no recorded trial, so there is no compiler log. Open it in the editor and press Ctrl+Enter "
                "to run it through the gate.")
                .arg(spec.label));
    if (spec.log.empty())
        return makeSideMessage(specText("The compiler said nothing about %1.").arg(spec.label));
    return makeSideText(spec.log, Language::Plain, stop);
}

} // namespace

QString SideSpec::key() const
{
    if (tab == DiffTab::Log)
        return QStringLiteral("log|%1|%2|%3").arg(label).arg(hasTrial).arg(std::hash<std::string>{}(log));
    std::error_code ignored;
    const auto written = std::filesystem::last_write_time(file, ignored).time_since_epoch().count();
    const auto size = std::filesystem::file_size(file, ignored);
    return QStringLiteral("%1|%2|%3|%4")
        .arg(tab == DiffTab::Plan ? QStringLiteral("plan") : QStringLiteral("source"),
             QString::fromStdString(file.string()))
        .arg(written)
        .arg(ignored ? 0 : size);
}

QString DiffSpec::key() const
{
    return QStringLiteral("%1\n%2\n%3%4")
        .arg(left ? left->key() : QString(), right.key())
        .arg(options.ignoreWhitespace)
        .arg(options.detectMoves);
}

SideSpec sideSpec(const lineage::RowRef &row, DiffTab tab)
{
    SideSpec spec;
    spec.tab = tab;
    spec.label = rowLabel(row);
    spec.file = row.file;
    if (tab == DiffTab::Log && row.trial) {
        spec.hasTrial = true;
        spec.log = row.trial->verdict.log;
    }
    return spec;
}

std::optional<DiffSpec> diffSpec(const lineage::Lineage &lineage, const QString &rowId,
                                 const QString &baseline, DiffTab tab, const diff::Options &options)
{
    const auto step = lineage::findStep(lineage, rowId.toStdString(), baseline.toStdString());
    if (!step)
        return std::nullopt;
    DiffSpec spec;
    spec.right = sideSpec(step->right, tab);
    spec.options = options;
    if (step->left)
        spec.left = sideSpec(*step->left, tab);
    return spec;
}

SideTextPtr readSide(const SideSpec &spec, const std::stop_token &stop)
{
    if (spec.tab == DiffTab::Log)
        return readLog(spec, stop);
    Result<std::string> bytes = files::readFile(spec.file, largestFile);
    if (!bytes)
        return makeSideMessage(QString::fromStdString(bytes.error().message));
    const std::string name = spec.file.filename().string();
    if (spec.tab == DiffTab::Source) {
        std::string sha = files::sha256Hex(*bytes);
        return makeSideText(std::move(*bytes), languageOfFile(QString::fromStdString(name)), stop,
                            std::move(sha));
    }
    const Result<kernel::Candidate> candidate = kernel::parseCandidate(*bytes, name);
    if (!candidate)
        return makeSideMessage(specText("The launch plan cannot be read: %1")
                                   .arg(QString::fromStdString(candidate.error().message)));
    return makeSideText(kernel::writePlan(*candidate), Language::LaunchPlan, stop);
}

} // namespace klineage::ui
