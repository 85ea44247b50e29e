// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/chain.h"

#include <algorithm>

namespace klineage::ui {

namespace {

const QLatin1String branchPrefix("trial:");

} // namespace

QString previousState(const lineage::Lineage &lineage, const QString &rowId)
{
    const auto row = lineage::findRow(lineage, rowId.toStdString());
    return row ? QString::fromStdString(row->parent) : QString();
}

QString nextState(const lineage::Lineage &lineage, const QString &rowId)
{
    const auto row = lineage::findRow(lineage, rowId.toStdString());
    if (!row)
        return {};
    const auto find = [&](const std::string &id) {
        return std::find_if(lineage.states.begin(), lineage.states.end(),
                            [&](const lineage::State &state) { return state.id == id; });
    };
    auto found = find(row->id);
    if (found == lineage.states.end())
        found = find(row->parent);
    if (found == lineage.states.end() || ++found == lineage.states.end())
        return {};
    return QString::fromStdString(found->id);
}

QString rowLabel(const lineage::RowRef &row)
{
    const QString id = QString::fromStdString(row.id);
    return id.startsWith(branchPrefix) ? id.mid(branchPrefix.size(), 8) : id;
}

} // namespace klineage::ui
