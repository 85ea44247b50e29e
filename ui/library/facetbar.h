// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/cardfacets.h"

#include <QWidget>

class QLabel;
class QMenu;
class QToolButton;

namespace klineage::ui {

class LibraryFilter;

/// A button a facet, with a menu of its words and how many cards each leaves. It holds nothing: what is chosen is a part of the filter's
/// text. Left and Right move, Down opens.
class FacetBar : public QWidget
{
    Q_OBJECT

public:
    explicit FacetBar(const LibraryFilter *filter, QWidget *parent = nullptr);

    /// After the filter has another query: marks what is in force, and says how many cards are left.
    void showQuery();
    void focusFirst();
    [[nodiscard]] QToolButton *button(Facet facet) const
    {
        return m_buttons[static_cast<std::size_t>(facet)];
    }

    /// How the filter's text is written, for a tooltip and for where nothing matches; rich text.
    [[nodiscard]] static QString help();

signals:
    void toggled(klineage::Facet facet, const QString &word);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void openMenu(Facet facet);

    const LibraryFilter *m_filter;
    QMenu *m_menu;
    QLabel *m_count;
    std::array<QToolButton *, allFacets.size()> m_buttons{};
};

} // namespace klineage::ui
