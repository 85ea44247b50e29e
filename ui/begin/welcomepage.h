// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>

class QLabel;
class QPushButton;
class QVBoxLayout;

namespace klineage::ui {

/// In the middle of the window while there is nothing to show: why, what a workspace is, and the ways to one. Scrolls where it is high.
class WelcomePage : public QWidget
{
    Q_OBJECT

public:
    struct Offer {
        QString why;      ///< a sentence: what is missing
        QString createIn; ///< folder that a workspace can be created in at once; empty: a folder is asked for
        bool hasExample = false; ///< there is one to copy
        bool canBegin = false;   ///< a workspace is open, so a lineage can be begun
        QStringList recent;      ///< folders, newest first
    };

    explicit WelcomePage(QWidget *parent = nullptr);

    void setOffer(const Offer &offer);
    [[nodiscard]] QString why() const;

signals:
    void openRequested();
    void createRequested(const QString &folder); ///< empty: ask for one
    void exampleRequested();
    void newLineageRequested();
    void newOperatorRequested();
    void importProblemsRequested();
    void importCardsRequested();
    void importArchiveRequested();
    void recentRequested(const QString &folder);

private:
    QPushButton *addWay(const QString &text, const QString &what, QLabel **label);

    QLabel *m_why;
    QVBoxLayout *m_column;
    QPushButton *m_open;
    QPushButton *m_create;
    QPushButton *m_example;
    QPushButton *m_begin;
    QPushButton *m_newOperator;
    QPushButton *m_importProblems;
    QPushButton *m_importCards;
    QPushButton *m_importArchive;
    QLabel *m_createText;
    QLabel *m_exampleText;
    QLabel *m_beginText;
    QWidget *m_recent;
    QString m_createIn;
};

} // namespace klineage::ui
