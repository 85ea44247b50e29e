// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/selection.h"

#include <QScopedValueRollback>

namespace klineage::ui {

void Selection::setLineage(const QString &key, const QString &row)
{
    if (key == m_lineageKey) {
        setRow(row);
        return;
    }
    // All state is new before the first signal goes out: a slot must not see the old row in the new lineage.
    const bool rowDiffers = row != m_row;
    const bool hadBaseline = !m_baseline.isEmpty();
    const bool hadHovered = !m_hovered.isEmpty();
    m_lineageKey = key;
    m_row = row;
    m_baseline.clear();
    m_hovered.clear();
    emit lineageChanged(m_lineageKey);
    if (hadBaseline)
        emit baselineChanged(m_baseline);
    if (hadHovered)
        emit hoveredChanged(m_hovered);
    if (rowDiffers)
        emit rowChanged(m_row);
}

void Selection::lookUp(const QString &key, const QString &row)
{
    const QScopedValueRollback<bool> lookingUp(m_isLookingUp, true);
    setLineage(key, row);
}

void Selection::setRow(const QString &row)
{
    if (row == m_row)
        return;
    const bool hadHovered = !m_hovered.isEmpty();
    m_row = row;
    m_hovered.clear(); // what the mouse was left on is not what is looked at now
    emit rowChanged(m_row);
    if (hadHovered)
        emit hoveredChanged(m_hovered);
}

void Selection::setBaseline(const QString &state)
{
    if (state == m_baseline)
        return;
    m_baseline = state;
    emit baselineChanged(m_baseline);
}

void Selection::setCard(const QString &name)
{
    if (name == m_card)
        return;
    m_card = name;
    emit cardChanged(m_card);
}

void Selection::setMarkedCards(const QStringList &names)
{
    if (names == m_markedCards)
        return;
    m_markedCards = names;
    emit markedCardsChanged();
}

void Selection::setHovered(const QString &row)
{
    if (row == m_hovered)
        return;
    m_hovered = row;
    emit hoveredChanged(m_hovered);
}

} // namespace klineage::ui
