// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/profiledelta.h"

#include "core/trial/stages.h"
#include "ui/style/format.h"

#include <QCoreApplication>
#include <QSet>

#include <algorithm>
#include <cmath>
#include <map>

namespace klineage::ui {

namespace {

constexpr double noisePoints = 1.0;
constexpr double noiseFraction = 0.02;

struct MetricInfo {
    const char *name;
    const char *label;
    Better better;
    ProfileRow::Kind kind = ProfileRow::Kind::Exact;
};

constexpr MetricInfo knownMetrics[] = {
    {"registers", QT_TRANSLATE_NOOP("Profile", "Registers / thread"), Better::Lower},
    {"static_shared", QT_TRANSLATE_NOOP("Profile", "Static shared memory"), Better::Neither},
    {"dynamic_shared", QT_TRANSLATE_NOOP("Profile", "Dynamic shared memory"), Better::Neither},
    {"stack_frame", QT_TRANSLATE_NOOP("Profile", "Stack frame"), Better::Lower},
    {"spill_stores", QT_TRANSLATE_NOOP("Profile", "Spill stores"), Better::Lower},
    {"spill_loads", QT_TRANSLATE_NOOP("Profile", "Spill loads"), Better::Lower},
    {"binary_bytes", QT_TRANSLATE_NOOP("Profile", "Code size"), Better::Neither},
    {"blocks", QT_TRANSLATE_NOOP("Profile", "Blocks"), Better::Neither},
    {"threads_per_block", QT_TRANSLATE_NOOP("Profile", "Threads / block"), Better::Neither},
    {"blocks_per_sm", QT_TRANSLATE_NOOP("Profile", "Resident blocks / SM"), Better::Neither},
    {"theoretical_occupancy", QT_TRANSLATE_NOOP("Profile", "Theoretical occupancy"), Better::Higher},
    {"waves", QT_TRANSLATE_NOOP("Profile", "Waves"), Better::Neither},
    {"work_groups", QT_TRANSLATE_NOOP("Profile", "Work-groups"), Better::Neither},
    {"work_group_size", QT_TRANSLATE_NOOP("Profile", "Work-group size"), Better::Neither},
    {"local_mem", QT_TRANSLATE_NOOP("Profile", "Local memory"), Better::Neither},
    {"private_mem", QT_TRANSLATE_NOOP("Profile", "Private memory"), Better::Lower},
    {"energy", QT_TRANSLATE_NOOP("Profile", "Energy / run"), Better::Lower, ProfileRow::Kind::Counter},
    {"kernel_time", QT_TRANSLATE_NOOP("Profile", "Kernel time, profiled"), Better::Lower,
     ProfileRow::Kind::Timed},
    {"pc_samples", QT_TRANSLATE_NOOP("Profile", "Samples taken"), Better::Neither,
     ProfileRow::Kind::Bookkeeping},
    {"pc_samples_dropped", QT_TRANSLATE_NOOP("Profile", "Samples dropped"), Better::Neither,
     ProfileRow::Kind::Bookkeeping},
    {"pc_sample_period", QT_TRANSLATE_NOOP("Profile", "Sample period"), Better::Neither,
     ProfileRow::Kind::Bookkeeping},
    {"launches", QT_TRANSLATE_NOOP("Profile", "Launches"), Better::Lower},
};

const MetricInfo *findInfo(const std::string &name)
{
    const auto found = std::find_if(std::begin(knownMetrics), std::end(knownMetrics),
                                    [&](const MetricInfo &info) { return name == info.name; });
    return found == std::end(knownMetrics) ? nullptr : found;
}

/// A figure that is listed once a kernel is shown once a run: the largest, because that kernel limits the run.
struct Figure {
    double value = 0;
    std::string unit;
    int kernels = 0;
};

std::map<std::string, Figure> figuresOf(const gate::Trial *trial)
{
    std::map<std::string, Figure> figures;
    if (!trial)
        return figures;
    for (const gate::Metric &metric : trial->metrics) {
        Figure &figure = figures[metric.name];
        figure.value = figure.kernels == 0 ? metric.value : std::max(figure.value, metric.value);
        figure.unit = metric.unit;
        ++figure.kernels;
    }
    return figures;
}

QString readable(const std::string &name)
{
    QString text = QString::fromStdString(name).replace(QLatin1Char('_'), QLatin1Char(' '));
    if (!text.isEmpty())
        text[0] = text[0].toUpper();
    return text;
}

std::optional<double> positive(double value)
{
    return value > 0 ? std::optional<double>(value) : std::nullopt;
}

ProfileRow headline(const char *name, const QString &label, const char *unit, Better better,
                    const gate::Trial *left, const gate::Trial *right, double (*figure)(const gate::Trial &))
{
    ProfileRow row;
    row.name = QString::fromLatin1(name);
    row.label = label;
    row.unit = QString::fromLatin1(unit);
    row.better = better;
    if (left)
        row.left = positive(figure(*left));
    if (right)
        row.right = positive(figure(*right));
    return row;
}

} // namespace

std::optional<double> ProfileRow::relativeChange() const
{
    if (pairedRatio)
        return pairedRatio->value - 1.0;
    if (!left || !right || *left == 0)
        return {};
    return *right / *left - 1.0;
}

std::optional<double> ProfileRow::absoluteChange() const
{
    if (!left || !right)
        return {};
    return *right - *left;
}

int ProfileRow::direction() const
{
    const auto change = pairedRatio ? relativeChange() : absoluteChange();
    if (!change || *change == 0 || better == Better::Neither || isNoise())
        return 0;
    return (*change < 0) == (better == Better::Lower) ? 1 : -1;
}

double ProfileRow::impact() const
{
    if (!left || !right)
        return 0;
    if (unit == QLatin1String("%"))
        return std::min(1.0, std::abs(*right - *left) / 100);
    const double ratio = pairedRatio ? pairedRatio->value : *left != 0 ? *right / *left : 0;
    if (*left == *right && !pairedRatio)
        return 0;
    return ratio <= 0 ? 1 : 1 - std::min(ratio, 1 / ratio); // from or to nothing is all of it
}

bool ProfileRow::isNoise() const
{
    if (!left || !right)
        return false;
    if (pairedRatio)
        return pairedRatio->low <= 1 && pairedRatio->high >= 1;
    switch (kind) {
    case Kind::Exact:
        return false;
    case Kind::Bookkeeping:
        return true;
    case Kind::Paired:
    case Kind::Timed:
    case Kind::Counter:
        break;
    }
    if (*left == *right)
        return false;
    if (unit == QLatin1String("%"))
        return std::abs(*right - *left) < noisePoints;
    return impact() < noiseFraction;
}

namespace {

QString profileText(const char *text)
{
    return QCoreApplication::translate("Profile", text);
}

/// Latency and the rates that follow from it: of the paired rounds where there are any, else of two trials, and then they say so.
void pairHeadlines(std::vector<ProfileRow> &rows, const gate::Trial &right, const gate::Comparison *paired)
{
    for (ProfileRow &row : rows) {
        row.kind = ProfileRow::Kind::Timed;
        if (!paired || paired->speedup.low <= 0 || paired->otherNs <= 0 || right.latencyNs.value <= 0) {
            if (row.left && row.right)
                row.note = profileText("not paired: the medians of two trials");
            continue;
        }
        const gate::Interval &speedup = paired->speedup;
        row.kind = ProfileRow::Kind::Paired;
        if (row.better == Better::Lower) {
            row.left = paired->otherNs;
            row.pairedRatio = gate::Interval{1 / speedup.value, 1 / speedup.high, 1 / speedup.low};
        } else if (row.right) {
            row.left = *row.right * right.latencyNs.value / paired->otherNs;
            row.pairedRatio = speedup;
        }
        row.note = profileText("paired rounds, both sides of this trial");
    }
}

/// What the gate took, stage by stage; nothing of trials that did not keep it.
void addStages(std::vector<ProfileRow> &rows, const gate::Trial *left, const gate::Trial *right)
{
    static constexpr const char *labels[] = {
        QT_TRANSLATE_NOOP("Profile", "Gate: start"), QT_TRANSLATE_NOOP("Profile", "Gate: compile"),
        QT_TRANSLATE_NOOP("Profile", "Gate: oracle"), QT_TRANSLATE_NOOP("Profile", "Gate: check"),
        QT_TRANSLATE_NOOP("Profile", "Gate: profile")};
    static_assert(std::size(labels) == std::size(gate::stageFields));
    for (std::size_t i = 0; i < std::size(labels); ++i) {
        const gate::NamedStage &stage = gate::stageFields[i];
        ProfileRow row;
        row.name = QStringLiteral("stage_") + QLatin1String(stage.name);
        row.label = profileText(labels[i]);
        row.unit = QStringLiteral("s");
        row.kind = ProfileRow::Kind::Bookkeeping;
        row.note = profileText("seconds that the gate took for it: nothing of the kernel's time");
        if (left)
            row.left = positive(left->stages.*stage.seconds);
        if (right)
            row.right = positive(right->stages.*stage.seconds);
        if (row.left || row.right)
            rows.push_back(row);
    }
}

/// What one looks for first: 0 changed, 1 noise, 2 equal or one side only.
int groupOf(const ProfileRow &row)
{
    if (row.isNoise())
        return 1;
    return row.impact() > 0 ? 0 : 2;
}

} // namespace

std::vector<ProfileRow> profileDelta(const gate::Trial *left, const gate::Trial *right,
                                     const gate::Comparison *paired)
{
    const auto tr = [](const char *text) { return QCoreApplication::translate("Profile", text); };
    std::vector<ProfileRow> rows = {
        headline("latency", tr("Latency"), "ns", Better::Lower, left, right,
                 [](const gate::Trial &t) { return t.latencyNs.value; }),
        headline("flops", tr("Arithmetic rate"), "FLOP/s", Better::Higher, left, right,
                 [](const gate::Trial &t) { return t.achievedFlops; }),
        headline("bytes", tr("Effective bandwidth"), "B/s", Better::Higher, left, right,
                 [](const gate::Trial &t) { return t.achievedBytes; }),
    };
    std::erase_if(rows, [](const ProfileRow &row) { return !row.left && !row.right; });
    if (right)
        pairHeadlines(rows, *right, paired);
    const auto headlines = static_cast<std::ptrdiff_t>(rows.size());

    const auto leftFigures = figuresOf(left);
    const auto rightFigures = figuresOf(right);
    std::map<std::string, ProfileRow> merged;
    const auto merge = [&](const std::map<std::string, Figure> &figures, bool isLeft) {
        for (const auto &[name, figure] : figures) {
            ProfileRow &row = merged[name];
            const MetricInfo *info = findInfo(name);
            row.name = QString::fromStdString(name);
            row.label = metricLabel(name);
            row.unit = QString::fromStdString(figure.unit);
            row.better = info ? info->better : Better::Neither;
            row.kind = info ? info->kind : ProfileRow::Kind::Counter;
            if (row.kind == ProfileRow::Kind::Timed)
                row.note = profileText("one launch each under the profiler, not paired");
            (isLeft ? row.left : row.right) = figure.value;
            if (figure.kernels > 1)
                row.note = QCoreApplication::translate("Profile", "largest of %n kernel(s)", nullptr,
                                                       figure.kernels);
        }
    };
    merge(leftFigures, true);
    merge(rightFigures, false);
    for (auto &[name, row] : merged)
        rows.push_back(std::move(row));
    std::stable_sort(rows.begin() + headlines, rows.end(), [](const ProfileRow &a, const ProfileRow &b) {
        return groupOf(a) != groupOf(b) ? groupOf(a) < groupOf(b) : a.impact() > b.impact();
    });
    addStages(rows, left, right);
    return rows;
}

QString metricLabel(const std::string &name)
{
    const MetricInfo *info = findInfo(name);
    return info ? profileText(info->label) : readable(name);
}

QString profileFigure(double value, const QString &unit)
{
    if (!unit.isEmpty() || std::abs(value) < 1e6)
        return formatQuantity(value, unit);
    const bool giga = std::abs(value) >= 1e9;
    const double scaled = value / (giga ? 1e9 : 1e6);
    return formatFixed(scaled, std::abs(scaled) >= 100  ? 0
                               : std::abs(scaled) >= 10 ? 1
                                                        : 2)
           + (giga ? QStringLiteral(" G") : QStringLiteral(" M"));
}

} // namespace klineage::ui
