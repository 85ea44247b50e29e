// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/poolpanel.h"

#include "ui/runs/gatedesk.h"
#include "ui/style/plainwidgets.h"

#include <QHeaderView>
#include <QLabel>
#include <QTableView>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

QString phaseText(gate::GatePhase phase)
{
    switch (phase) {
    case gate::GatePhase::Cold:
        return PoolModel::tr("not started");
    case gate::GatePhase::Starting:
        return PoolModel::tr("starting");
    case gate::GatePhase::Idle:
        return PoolModel::tr("idle");
    case gate::GatePhase::Busy:
        return PoolModel::tr("busy");
    case gate::GatePhase::Resting:
        return PoolModel::tr("lost, tried again soon");
    case gate::GatePhase::Gone:
        return PoolModel::tr("failed");
    }
    return {};
}

QString deviceText(const gate::GateState &gate)
{
    QStringList names;
    for (const gate::DeviceInfo &device : gate.devices) {
        if (device.available)
            names << QString::fromStdString(device.name);
    }
    if (!gate.isKnown) {
        for (const std::string &platform : gate.spec.platforms)
            names << QString::fromStdString(platform);
    }
    return names.join(QStringLiteral(", "));
}

} // namespace

void PoolModel::setState(const gate::PoolState &state)
{
    beginResetModel();
    m_rows.clear();
    for (const gate::GateState &gate : state.gates) {
        Row row;
        row.texts[GateColumn] = QString::fromStdString(gate.spec.name);
        row.texts[WhereColumn] =
            gate.spec.where.empty() ? tr("this machine") : QString::fromStdString(gate.spec.where);
        row.texts[StateColumn] = phaseText(gate.phase);
        if (!gate.stand.empty())
            row.texts[StateColumn] += QStringLiteral(": ") + QString::fromStdString(gate.stand);
        row.texts[DeviceColumn] = deviceText(gate);
        row.texts[TrialsColumn] = gate.losses == 0 ? QString::number(gate.trials)
                                                   : tr("%1, %2 lost").arg(gate.trials).arg(gate.losses);
        row.texts[LoadColumn] =
            gate.upSeconds > 0
                ? QStringLiteral("%1 %").arg(100 * gate.busySeconds / gate.upSeconds, 0, 'f', 0)
                : QString();
        if (gate.problem)
            row.tip = QString::fromStdString(gate.problem->message + "\n" + gate.problem->detail).trimmed();
        m_rows.push_back(std::move(row));
    }
    endResetModel();
}

int PoolModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int PoolModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(ColumnCount);
}

QVariant PoolModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    const Row &row = m_rows[static_cast<std::size_t>(index.row())];
    if (role == Qt::DisplayRole)
        return row.texts[index.column()];
    if (role == Qt::ToolTipRole && !row.tip.isEmpty())
        return row.tip;
    if (role == Qt::TextAlignmentRole && (index.column() == TrialsColumn || index.column() == LoadColumn))
        return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    return {};
}

QVariant PoolModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case GateColumn:
        return tr("Gate");
    case WhereColumn:
        return tr("Where");
    case StateColumn:
        return tr("State");
    case DeviceColumn:
        return tr("Device");
    case TrialsColumn:
        return tr("Trials");
    case LoadColumn:
        return tr("Busy");
    default:
        return {};
    }
}

PoolPanel::PoolPanel(GateDesk *desk, QWidget *parent)
    : QDialog(parent)
    , m_desk(desk)
    , m_model(new PoolModel(this))
    , m_summary(new QLabel)
{
    setWindowTitle(tr("Gates"));
    auto *table = new QTableView;
    table->setModel(m_model);
    table->setAccessibleName(tr("Gates of the pool"));
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setShowGrid(false);
    table->setWordWrap(false);
    table->setTabKeyNavigation(false);
    table->verticalHeader()->hide();
    makePlainHeader(table->horizontalHeader());
    table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    table->horizontalHeader()->setSectionResizeMode(PoolModel::StateColumn, QHeaderView::Stretch);
    m_summary->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto *layout = new QVBoxLayout(this);
    layout->addWidget(m_summary);
    layout->addWidget(table, 1);
    resize(760, 320);
    connect(desk, &GateDesk::changed, this, &PoolPanel::refresh);
    refresh();
}

void PoolPanel::refresh()
{
    const gate::PoolState state = m_desk->state();
    if (!m_desk->problem().isEmpty())
        m_summary->setText(m_desk->problem());
    else if (m_desk->hasPool())
        m_summary->setText(tr("%1 — %2").arg(poolSummary(state), m_desk->fileName()));
    else if (m_desk->hasGates())
        m_summary->setText(
            tr("%1 — runs ask a gate through: %2").arg(poolSummary(state), m_desk->runPlace().launcher));
    else
        m_summary->setText(tr("There is no pool.toml: trials go to the gate of this machine."));
    m_model->setState(state);
}

} // namespace klineage::ui
