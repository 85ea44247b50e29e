// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/view/geometry.h"
#include "ui/diff/view/viewstate.h"
#include "ui/highlight/texthighlighter.h"

#include <QAbstractScrollArea>

class QAction;

namespace klineage::ui {

class OverviewStrip;

/// Shows a Document: side by side, unified, or a single text. Only what is visible is laid out and painted, so that the length of the
/// texts does not matter. Both sides scroll together. Code is selected and copied from one side.
class DiffView : public QAbstractScrollArea
{
    Q_OBJECT

public:
    explicit DiffView(QWidget *parent = nullptr);
    ~DiffView() override;

    /// keepPlace: the code that was at the reading line stays there, as far as the new texts have it.
    void setDocument(DocumentPtr document, bool keepPlace);
    [[nodiscard]] const DocumentPtr &document() const { return m_state.document(); }

    [[nodiscard]] const ViewOptions &options() const { return m_state.options(); }
    void setUnified(bool unified);
    void setFolding(bool folding);
    void setWrapping(bool wrap); ///< long lines go on below themselves

    /// The stall samples of the document beside its lines; null: none. A new document has none until it is set again.
    void setHeat(HeatPtr heat);
    [[nodiscard]] const HeatPtr &heat() const { return m_state.heat; }
    /// The samples of a row of the view, or of what it hides, on one side in words; empty where nothing is shown.
    [[nodiscard]] QString heatOfRow(int row, Side side) const;

    /// The comments on the document beside its lines; null: none. A new document has none until they are set again.
    void setComments(CommentsPtr comments);
    /// What was said of the lines of a row of the view, or of those that it hides, on one side; empty: nothing.
    [[nodiscard]] QString commentsOfRow(int row, Side side) const;
    /// Lines (0-based) of one side, `last` being one of them.
    struct ChosenLines {
        Side side = Side::Right;
        int first = 0;
        int last = 0;
    };
    /// The selected lines, as long as the current row is among them; else the line of the current row. Nothing on a fold.
    [[nodiscard]] std::optional<ChosenLines> chosenLines() const;

    /// 0-based hunk at or before the current row (-1: none before it), and how many there are.
    [[nodiscard]] int currentHunk() const;
    [[nodiscard]] int hunkCount() const;
    /// False when there is no hunk in that direction.
    bool goToNextHunk();
    bool goToPreviousHunk();
    void goToHunk(int hunk);

    void setMatches(FindResult matches, int current);
    void goToMatch(int index);
    [[nodiscard]] const FindResult &matches() const { return m_state.matches; }
    [[nodiscard]] int currentMatch() const { return m_state.currentMatch; }

    void goToLine(Side side, int line);
    /// Brings a line into view and marks it until one goes elsewhere. It is nobody's choice: lineChosen() is silent. False when there
    /// is no such line.
    bool showLine(Side side, int line);
    [[nodiscard]] const std::optional<SideLine> &markedLine() const { return m_state.marked; }
    [[nodiscard]] QString selectedText() const;
    void copy() const;
    void selectAll();
    /// Names its two commands, "diff.copyCode" and "diff.selectCode", under which the window lists and remaps their keys.
    void nameCommands(const QString &prefix);
    /// Uses these instead, of a view that is made after the window has listed its commands. Not owned.
    void takeCommands(QAction *copyCode, QAction *selectCode);

    /// The current row in words, for assistive technology: "line 46 changed: …, was …".
    [[nodiscard]] QString currentRowInWords() const;
    [[nodiscard]] int currentRow() const { return m_state.currentRow; }
    [[nodiscard]] const ViewRows &rows() const { return m_state.rows(); }
    [[nodiscard]] const ViewGeometry &geometryOfRows() const { return m_geometry; }
    /// What is said about a place of the viewport; empty: nothing.
    [[nodiscard]] QString toolTipAt(const QPoint &point) const;
    /// Row of the view at a height of the viewport, not limited to existing rows.
    [[nodiscard]] int rowAt(int y) const;

signals:
    void currentRowChanged();
    /// Somebody went to a line (0-based): with the mouse, a key, or from change to change or match to match.
    void lineChosen(klineage::ui::Side side, int line);

protected:
    bool event(QEvent *event) override;
    bool viewportEvent(QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void mouseDoubleClickEvent(QMouseEvent *event) override;
    void contextMenuEvent(QContextMenuEvent *event) override;
    void focusInEvent(QFocusEvent *event) override;
    void focusOutEvent(QFocusEvent *event) override;
    void scrollContentsBy(int dx, int dy) override;

private:
    struct Place {
        int row = 0; ///< of the view
        int y = 0;   ///< of its top edge in the viewport
    };
    struct Hit {
        Side side = Side::Right;
        TextPosition position;
        bool inText = false; ///< neither: on a row without that side
        bool inGutter = false;
    };

    void applyStyle();
    void updateGeometryOfRows();
    void wrapRows();
    [[nodiscard]] Place readingPlace() const;
    void scrollTo(const Place &place);
    void changeOptions(const ViewOptions &options);
    void setCurrentRow(int row, bool extend = false);
    void moveToRow(int row, bool extend = false); ///< without saying that it was chosen
    void ensureVisible(int row);
    void reveal(int diffRow); ///< opens the fold that hides it
    [[nodiscard]] Hit hitTest(const QPoint &point);
    [[nodiscard]] int hunkFirstRow(int hunk) const;
    [[nodiscard]] TextPosition positionOfRow(int row, Side side) const;
    void extendTo(const QPoint &point);
    void autoScroll();
    void startHighlighting();

    ViewState m_state;
    LineLayouts m_layouts;
    ViewGeometry m_geometry;
    CodePalette m_palette;
    OverviewStrip *m_strip = nullptr;
    TextHighlighter m_highlighters[2];
    QTimer *m_autoScroll = nullptr;
    QAction *m_copyCode = nullptr;
    QAction *m_selectCode = nullptr;
    bool m_selecting = false;
};

} // namespace klineage::ui
